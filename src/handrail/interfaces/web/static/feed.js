// Follows the session: adds and replaces blocks, keeps the reader's place, and says what waits.

import { base, element, fill, guarded, json, part, session } from "./api.js";

const NEAR_END = 48;
const VISIBLE_MS = 300;
const REFRESH_MS = 150;
const REST_MS = 20_000;
const scroller = document.getElementById("scroller");
const log = document.getElementById("log");
const title = document.body.dataset.title;

export const state = {
  seq: Number(document.body.dataset.seq || 0),
  start: Number(document.body.dataset.start || 0),
  running: document.body.dataset.running === "1",
  waiting: 0,
};

const listeners = [];
export const onChange = (listener) => listeners.push(listener);

function atEnd() {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
}

export function toEnd() {
  scroller.scrollTop = scroller.scrollHeight;
  document.getElementById("new-below").hidden = true;
}

// When a question was first seen: a key counts only after that has been a while.
const seenSince = new WeakMap();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) seenSince.delete(entry.target);
    else if (!seenSince.has(entry.target)) seenSince.set(entry.target, performance.now());
  }
});

export function readyForKeys(question) {
  const since = seenSince.get(question);
  return since !== undefined && performance.now() - since >= VISIBLE_MS;
}

export function watchQuestions(node) {
  for (const question of node.querySelectorAll("[data-question]")) watcher.observe(question);
}

function put(block) {
  const existing = document.getElementById(block.id);
  const fresh = element(block.html);
  if (!fresh) return;
  if (!existing) {
    fresh.classList.add("appear");
    (document.getElementById(block.parent) || log).append(fresh);
  } else if (block.holds) {
    existing.className = fresh.className;
    if (existing.tagName === "DETAILS" && !existing.dataset.touched) existing.open = fresh.open;
    return;
  } else {
    replace(existing, fresh);
  }
  watchQuestions(fresh);
}

// Replace an element; what the user has opened stays open, and focus and typed text stay where they are.
function replace(existing, fresh) {
  const old = [existing, ...existing.querySelectorAll("details")];
  const now = [fresh, ...fresh.querySelectorAll("details")];
  old.forEach((each, at) => {
    if (each.dataset.touched && now[at]?.tagName === each.tagName) {
      now[at].open = each.open;
      now[at].dataset.touched = "1";
    }
  });
  const focused = existing.contains(document.activeElement) ? document.activeElement : null;
  const typed = focused?.id ? { id: focused.id, value: focused.value } : null;
  existing.replaceWith(fresh);
  if (!focused) return;
  const again = typed && document.getElementById(typed.id);
  if (again) {
    again.value = typed.value ?? again.value;
    again.focus();
  } else if (fresh.tabIndex >= -1 && fresh.hasAttribute("tabindex")) {
    fresh.focus({ preventScroll: true });
  }
}

function showState() {
  const word = state.waiting ? "asks you" : state.running ? "working" : "";
  document.title = `${word ? `${state.waiting ? "●" : "…"} ${word} · ` : ""}${currentTitle()} · Handrail`;
  document.getElementById("stop").hidden = !state.running;
  document.body.classList.toggle("running", state.running);
}

function currentTitle() {
  return document.querySelector("#head h1")?.textContent || title;
}

function notify(words) {
  if (document.visibilityState === "visible" && document.hasFocus()) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const note = new Notification("Handrail", { body: `${currentTitle()}: ${words}`, tag: session });
  note.onclick = () => window.focus();
}

function receive(message) {
  const stay = !atEnd();
  const before = log.lastElementChild?.lastElementChild;
  for (const block of message.blocks) put(block);
  fill(document.getElementById("status"), message.status);
  tick();
  if (message.waiting > state.waiting) {
    notify(`asks you: ${message.asked}`);
    focusQuestion();
  } else if (state.running && !message.running) {
    notify("has ended");
  }
  state.waiting = message.waiting;
  state.running = message.running;
  state.seq = Math.max(state.seq, message.seq);
  showState();
  if (message.refresh.length) refresh(message.refresh);
  if (!message.blocks.length) return;
  if (!stay) toEnd();
  else if (log.lastElementChild?.lastElementChild !== before) document.getElementById("new-below").hidden = false;
  for (const listener of listeners) listener(message);
}

// An empty composer gives the focus to a new question, so that its keys work.
function focusQuestion() {
  const message = document.getElementById("message");
  const active = document.activeElement;
  if (message.value || (active && active !== message && active !== document.body)) return;
  document.querySelector("[data-question]")?.closest("[data-card]")?.focus({ preventScroll: true });
}

let due = new Set();
let timer = 0;
export function refresh(names) {
  for (const name of names) due.add(name);
  clearTimeout(timer);
  timer = setTimeout(() => {
    const now = due;
    due = new Set();
    for (const name of now) guarded(() => refreshPart(name));
    if (now.has("changes") || now.has("todos") || now.has("files")) guarded(refreshCounts);
  }, REFRESH_MS);
}

async function refreshPart(name) {
  if (name === "sessions") return refreshSessions();
  if (name === "head") {
    fill(document.getElementById("head"), await part(`/s/${session}/part/head`));
    return showState();
  }
  const selected = document.querySelector(".tabs [aria-selected=true]")?.dataset.id;
  const overview = selected === "run" && ["run", "todos", "changes"].includes(name);
  if (selected === name || overview) await showTab(selected);
  return undefined;
}

export async function showTab(name) {
  const panel = document.getElementById("panel");
  for (const tab of document.querySelectorAll(".tabs [role=tab]")) {
    const chosen = tab.dataset.id === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  panel.setAttribute("aria-labelledby", `tab-${name}`);
  const html = await part(`/s/${session}/part/${name}?start=${state.start}`);
  if (document.getElementById(`tab-${name}`).ariaSelected !== "true") return; // another tab was chosen meanwhile
  if (panel.innerHTML !== html) fill(panel, html);
  tick();
}

async function refreshCounts() {
  const counts = await json(`/s/${session}/part/counts`);
  for (const [name, count] of Object.entries(counts)) {
    const tab = document.getElementById(`tab-${name}`);
    const shown =
      tab.querySelector(".count") ||
      tab.appendChild(Object.assign(document.createElement("span"), { className: "count" }));
    shown.textContent = count || "";
  }
}

export async function refreshSessions() {
  const list = document.getElementById("sessions");
  const query = document.getElementById("search").value;
  const status = document.getElementById("status-filter").value;
  const asked = new URLSearchParams({ q: query, current: session, status });
  const html = await part(`/sessions?${asked}`);
  if (list.innerHTML === html || list.contains(document.activeElement)) return;
  fill(list, html);
}

// Running clocks.
export function tick() {
  const now = Date.now() / 1000;
  for (const each of document.querySelectorAll(".clock")) {
    const seconds = Math.max(0, Math.floor(now - Number(each.dataset.since)));
    const words =
      seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
    if (each.textContent !== words) each.textContent = words;
  }
}

function connect() {
  const bar = document.getElementById("connection");
  let attempts = 0;
  let source = null;
  let resting = 0;
  const open = () => {
    source = new EventSource(`${base}/s/${session}/feed?start=${state.start}&after=${state.seq}`);
    source.onopen = () => {
      attempts = 0;
      bar.hidden = true;
    };
    source.onmessage = (event) => {
      receive(JSON.parse(event.data));
      if (document.hidden) rest();
    };
    source.addEventListener("problem", (event) => {
      const problem = JSON.parse(event.data);
      bar.textContent = `${problem.message} ${problem.advice}`;
      bar.hidden = false;
    });
    source.onerror = () => {
      attempts += 1;
      bar.textContent = `Connection lost. Trying again, attempt ${attempts}.`;
      // The server ends a stream when settings have changed: that is over before it needs to be said.
      setTimeout(() => (bar.hidden = source?.readyState === EventSource.OPEN), attempts > 1 ? 0 : 700);
      if (source?.readyState === EventSource.CLOSED) setTimeout(open, Math.min(10, attempts) * 1000);
    };
  };
  const close = () => {
    source?.close();
    source = null;
  };
  // A browser has few connections to one server: a tab that nobody sees and where nothing happens gives up its own.
  const rest = () => {
    clearTimeout(resting);
    resting = setTimeout(() => document.hidden && !state.running && !state.waiting && close(), REST_MS);
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : source || open()));
  // A page that is left for good must not keep its connection in the browser's cache of pages.
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && !source && open());
  open();
}

export function start() {
  setInterval(tick, 1000);
  tick();
  if (!session) {
    document.getElementById("stop").hidden = true;
    return;
  }
  watchQuestions(log);
  showState();
  toEnd();
  scroller.addEventListener("scroll", () => atEnd() && (document.getElementById("new-below").hidden = true), {
    passive: true,
  });
  log.addEventListener("click", (event) => {
    const details = event.target.closest("summary")?.parentElement;
    if (details) details.dataset.touched = "1";
  });
  connect();
}
