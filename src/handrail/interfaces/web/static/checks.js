// The place of checks: starts and stops them, and follows how far they are.

import { fill, part, request } from "./api.js";

const RUNNING_MS = 400;
const IDLE_MS = 3000;
const live = document.getElementById("checks");
let shown = "";
let timer = 0;

// Also follows what other pages start; a server that is gone is asked again.
async function follow() {
  if (document.visibilityState === "visible") await part("/checks/part").then(show, () => undefined);
  clearTimeout(timer);
  timer = setTimeout(follow, live.querySelector(".verdict.run") ? RUNNING_MS : IDLE_MS);
}

function show(html) {
  if (html !== shown) {
    const open = new Map([...live.querySelectorAll("details")].map((each) => [each.dataset.id, each.open]));
    fill(live, html);
    for (const each of live.querySelectorAll("details")) each.open = open.get(each.dataset.id) ?? each.open;
    shown = html;
  }
  const running = live.querySelector(".verdict.run") !== null;
  for (const each of document.querySelectorAll("[data-act=checks-run]")) each.disabled = running;
  document.querySelector("[data-act=checks-stop]").disabled = !running;
  // For screen readers: what is new, without the clocks.
  const said = document.getElementById("checks-said");
  const words = live.querySelector(".verdict .told")?.textContent || "";
  if (said.textContent !== words) said.textContent = words;
}

export const clicks = {
  async "checks-run"(button) {
    const { only, changed } = button.dataset;
    await request("POST", "/checks/run", { only: only ? [only] : [], changed: Boolean(changed) });
    await follow();
  },
  async "checks-stop"() {
    await request("POST", "/checks/cancel");
    await follow();
  },
};

export function start() {
  if (live) follow();
}
