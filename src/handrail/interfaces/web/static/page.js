// Starts what the page needs.

import { guarded, part } from "./api.js";
import * as actions from "./actions.js";
import * as checks from "./checks.js";
import * as composer from "./composer.js";
import * as feed from "./feed.js";
import * as keys from "./keys.js";
import * as splits from "./splits.js";
import * as summary from "./summary.js";
import * as assistant from "./task_assistant.js";
import * as tasks from "./tasks.js";

const SESSIONS_MS = 4000;

actions.start();
keys.start();
checks.start();
splits.start();
tasks.start();
assistant.start();
if (document.getElementById("composer")) {
  feed.start();
  composer.start();
}
if (document.getElementById("log")) summary.start();

const search = document.getElementById("search");
let typing = 0;
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => guarded(feed.refreshSessions), 120);
});
setInterval(() => {
  // Sessions of other pages and terminals; a server that is gone is shown by the connection bar.
  if (document.visibilityState === "visible") feed.refreshSessions().catch(() => undefined);
}, SESSIONS_MS);
part("/where")
  .then((html) => (document.getElementById("where").innerHTML = html))
  .catch(() => undefined);
document.documentElement.dataset.ready = "1";
