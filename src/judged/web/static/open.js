/* Tells of files that are too large before they are sent, and that a large one is on its way. */
const form = document.querySelector("form.open");
const said = document.getElementById("too-much");
const button = form.querySelector("button");
const limits = { file: Number(form.dataset.file), total: Number(form.dataset.total), runs: Number(form.dataset.runs) };
const megabytes = (bytes) => `${Math.ceil(bytes / 1048576).toLocaleString("en")} MB`;

/** What is wrong with the files that are chosen; nothing if all is well. */
const problem = () => {
  const chosen = [...form.querySelectorAll("input[type=file]")].flatMap((input) => [...input.files]);
  const large = chosen.find((file) => file.size > limits.file);
  if (large) return `${large.name} has ${megabytes(large.size)}; a file may have ${megabytes(limits.file)}.`;
  const total = chosen.reduce((sum, file) => sum + file.size, 0);
  if (total > limits.total) return `These files have ${megabytes(total)}; together they may have ${megabytes(limits.total)}.`;
  const runs = document.getElementById("runs").files.length;
  return runs > limits.runs ? `${runs} runs are chosen; at most ${limits.runs} can be opened.` : "";
};

const tell = () => {
  said.textContent = problem();
  said.hidden = !said.textContent;
  button.disabled = !said.hidden;
};

form.addEventListener("change", tell);
form.addEventListener("submit", () => {
  button.textContent = "Opening...";
});
addEventListener("pageshow", () => {
  button.textContent = "Open";
  tell();
});
