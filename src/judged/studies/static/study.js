/* A study works without scripts. With scripts, dwell time excludes hidden tabs, Escape returns to the results, and a
   change of a weight ranks the results again without a new page. */

const backForm = document.getElementById("back");
const timeLeft = document.getElementById("time-left");

if (backForm) {
  let visibleSince = document.hidden ? 0 : performance.now();
  let earlierVisibleMs = 0;
  const visibleMs = () => earlierVisibleMs + (visibleSince ? performance.now() - visibleSince : 0);
  document.addEventListener("visibilitychange", () => {
    earlierVisibleMs = visibleMs();
    visibleSince = document.hidden ? 0 : performance.now();
  });
  const { seconds } = backForm.elements;
  seconds.disabled = false;
  backForm.addEventListener("submit", () => (seconds.value = (visibleMs() / 1000).toFixed(3)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") backForm.querySelector("button").click();
  });
}

if (timeLeft) {
  const end = performance.now() + 1000 * Number(timeLeft.dataset.seconds);
  const updateTimeLeft = () => {
    const seconds = Math.max(0, Math.round((end - performance.now()) / 1000));
    timeLeft.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    if (seconds) setTimeout(updateTimeLeft, 1000);
    else document.getElementById("finish").requestSubmit();
  };
  updateTimeLeft();
}

const weightForm = document.getElementById("weights");

async function showRanking(address) {
  const response = await fetch(address);
  if (response.redirected || !response.ok) throw new Error(response.statusText); // for example, the time is over
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  document.getElementById("results").replaceWith(page.getElementById("results"));
  history.replaceState(null, "", address);
}

if (weightForm) {
  let rankings = Promise.resolve();
  weightForm.addEventListener("input", ({ target }) => (target.nextElementSibling.value = target.value));
  weightForm.addEventListener("change", () => {
    const address = `${weightForm.action}?${new URLSearchParams(new FormData(weightForm))}`;
    // One request after the other, so that the log has all changes in their order.
    rankings = rankings.then(() => showRanking(address)).catch(() => location.assign(address));
  });
}

// A page restored from the back/forward cache would show outdated state.
addEventListener("pageshow", (event) => event.persisted && location.reload());
