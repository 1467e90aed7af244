/* A study works without scripts. With them the time in a document is that in which it is seen, and Escape leads back. */

const back = document.getElementById("back");
const left = document.getElementById("left");

if (back) {
  let begun = document.hidden ? 0 : performance.now();
  let spent = 0;
  const seen = () => spent + (begun ? performance.now() - begun : 0);
  document.addEventListener("visibilitychange", () => {
    spent = seen();
    begun = document.hidden ? 0 : performance.now();
  });
  const { seconds } = back.elements;
  seconds.disabled = false;
  back.addEventListener("submit", () => (seconds.value = (seen() / 1000).toFixed(3)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") back.querySelector("button").click();
  });
}

if (left) {
  const end = performance.now() + 1000 * Number(left.dataset.seconds);
  const tell = () => {
    const seconds = Math.max(0, Math.round((end - performance.now()) / 1000));
    left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    if (seconds) setTimeout(tell, 1000);
    else document.getElementById("finish").requestSubmit();
  };
  tell();
}

// A page that the browser kept would show what was true when it was left.
addEventListener("pageshow", (event) => event.persisted && location.reload());
