/* Checks the sizes of files before they are sent, and shows that an upload is running. */
const form = document.querySelector("form.open");
const message = document.getElementById("size-problem");
const button = form.querySelector("button");
const limits = { file: Number(form.dataset.file), total: Number(form.dataset.total), runs: Number(form.dataset.runs) };
const megabytes = (bytes) => `${Math.ceil(bytes / 1048576).toLocaleString("en")} MB`;

/** Return the problem of the selected files; "" if they are within the limits. */
const findProblem = () => {
  const files = [...form.querySelectorAll("input[type=file]")].flatMap((input) => [...input.files]);
  const large = files.find((file) => file.size > limits.file);
  if (large) return `${large.name} has ${megabytes(large.size)}; a file may have ${megabytes(limits.file)}.`;
  const total = files.reduce((sum, file) => sum + file.size, 0);
  if (total > limits.total) return `These files have ${megabytes(total)}; together they may have ${megabytes(limits.total)}.`;
  const runs = document.getElementById("runs").files.length;
  return runs > limits.runs ? `${runs} runs are chosen; at most ${limits.runs} can be opened.` : "";
};

const showProblem = () => {
  message.textContent = findProblem();
  message.hidden = !message.textContent;
  button.disabled = !message.hidden;
};

form.addEventListener("change", showProblem);
form.addEventListener("submit", () => {
  button.textContent = "Opening...";
});
addEventListener("pageshow", () => {
  button.textContent = "Open";
  showProblem();
});
