/* A study works without scripts. With scripts, dwell time excludes hidden tabs, and Escape returns to the results. */

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

// A page restored from the back/forward cache would show outdated state.
addEventListener("pageshow", (event) => event.persisted && location.reload());
