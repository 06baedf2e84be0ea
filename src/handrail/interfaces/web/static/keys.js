// Keys: everything works without a mouse.

import { base, guarded } from "./api.js";
import { closeDrawers } from "./actions.js";
import { focusMessage } from "./composer.js";
import { helpDialog } from "./dialogs.js";
import { readyForKeys, state } from "./feed.js";

function typing(target) {
  return target.closest("input, textarea, select, [contenteditable]");
}

// The question in focus; else the first that waits.
function question() {
  const focused = document.activeElement?.closest("[data-card]")?.querySelector("[data-question]");
  return focused || document.querySelector("[data-question]");
}

function moveTo(step) {
  const cards = [...document.querySelectorAll("#log [data-card], #log .answer:not([hidden])")];
  if (!cards.length) return;
  const at = cards.indexOf(document.activeElement?.closest("[data-card], .answer"));
  const next = cards[at < 0 ? (step > 0 ? 0 : cards.length - 1) : Math.min(cards.length - 1, Math.max(0, at + step))];
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function answer(key) {
  const asked = question();
  if (!asked || !readyForKeys(asked)) return false;
  const button = asked.querySelector(`[data-key="${key}"]`);
  if (!button || button.disabled) return false;
  button.click();
  return true;
}

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const { key } = event;
    if (key === "Escape") {
      if (document.getElementById("dialog").open || document.querySelector("#completions:not([hidden])")) return;
      if (document.querySelector(".side.open, .inspector.open")) closeDrawers();
      else if (event.target.closest(".reason"))
        event.target.closest(".reason").querySelector("[data-act=reject-back]").click();
      else if (state.running) document.getElementById("stop").click();
      else if (document.querySelector("[data-act=task-stop]:not([hidden])"))
        document.querySelector("[data-act=task-stop]").click();
      else document.activeElement?.blur();
      return;
    }
    if (typing(event.target) || document.getElementById("dialog").open) return;
    const actions = {
      y: () => answer("y"),
      a: () => answer("a"),
      n: () => answer("n") || location.assign(`${base}/`),
      "/": () => document.getElementById("search").focus(),
      j: () => moveTo(1),
      k: () => moveTo(-1),
      i: focusMessage,
      "?": () => guarded(helpDialog),
    };
    if (!Object.hasOwn(actions, key)) return;
    event.preventDefault();
    actions[key]();
  });
}
