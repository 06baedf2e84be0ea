// The bar above a conversation while the summary of its last answer is out of view.

import { make } from "./api.js";
import { fillComposer } from "./composer.js";
import { onChange } from "./feed.js";

const STEPS = 3;
const bar = document.getElementById("sticky");
const scroller = document.getElementById("scroller");
let dismissed = "";
let watched = null;
let observer = null;

function lastAnswer() {
  const turns = [...document.querySelectorAll("#log > .turn")];
  const turn = turns.at(-1);
  // Only a finished turn, and the latest: a newer message clears the bar.
  if (!turn?.querySelector(".turn-end")) return null;
  return [...turn.querySelectorAll(".answer:not([hidden])")].at(-1) || null;
}

// The bar covers the top of the conversation: there is room for it above the first turn, and nothing moves.
function setBar(shown) {
  if (bar.hidden === !shown) return;
  bar.hidden = !shown;
  const height = scroller.scrollHeight;
  const at = scroller.scrollTop;
  scroller.classList.toggle("under-bar", shown);
  scroller.scrollTop = Math.max(0, at + scroller.scrollHeight - height);
}

function show(answer) {
  const text = (answer.querySelector("[data-summary]") || answer).innerText.trim().split("\n")[0];
  const steps = [...document.querySelectorAll("#log > .turn:last-of-type [data-next] button")].slice(0, STEPS);
  const details = make("button", { type: "button", class: "small" }, "See details");
  details.addEventListener("click", () => answer.scrollIntoView({ block: "start" }));
  const close = make("button", { type: "button", class: "quiet small", "aria-label": "Dismiss" }, "×");
  close.addEventListener("click", () => {
    dismissed = answer.id;
    setBar(false);
  });
  const chips = steps.map((step) => {
    const chip = make("button", { type: "button", class: "chip" }, step.textContent);
    chip.addEventListener("click", () => fillComposer(step.dataset.text));
    return chip;
  });
  bar.replaceChildren(make("span", { class: "text" }, text), ...chips, details, close);
  setBar(true);
}

function update() {
  const answer = lastAnswer();
  const target = answer?.querySelector("[data-summary]") || answer;
  if (target === watched) return;
  observer?.disconnect();
  watched = target;
  setBar(false);
  if (!answer) return;
  observer = new IntersectionObserver(
    ([entry]) => {
      if (entry.isIntersecting || dismissed === answer.id || !answer.isConnected) setBar(false);
      else show(answer);
    },
    { root: scroller },
  );
  observer.observe(target);
}

export function start() {
  onChange(update);
  update();
}
