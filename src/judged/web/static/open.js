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
  if (large) return `A file can have at most ${megabytes(limits.file)}, but ${large.name} has ${megabytes(large.size)}.`;
  const total = files.reduce((sum, file) => sum + file.size, 0);
  if (total > limits.total) return `The files can have at most ${megabytes(limits.total)} together, but they have ${megabytes(total)}.`;
  const runs = document.getElementById("runs").files.length;
  return runs > limits.runs ? `At most ${limits.runs} runs can be opened, but ${runs} are selected.` : "";
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
