// A client of `handrail acp` by the npm SDK. Reads what to do as JSON from its argument, and prints what it saw.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const wanted = JSON.parse(process.argv[2]);
const saw = { sessionId: "", stops: [], updates: [], asked: [], closed: 0, buffers: wanted.buffers ?? {} };
const { methods } = acp;

const text = async (path) => saw.buffers[path] ?? (await readFile(path, "utf8"));
let agentContext;

const client = acp
  .client({ name: "handrail-tests" })
  .onNotification(methods.client.session.update, ({ params }) => {
    saw.updates.push(params.update);
    const { sessionUpdate, status, title } = params.update;
    if (wanted.cancelAt && status === "in_progress" && title?.includes(wanted.cancelAt)) {
      agentContext.notify(methods.agent.session.cancel, { sessionId: params.sessionId });
      wanted.cancelAt = "";
    }
    return sessionUpdate;
  })
  .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
    saw.asked.push(params.toolCall);
    if (wanted.waits) {
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          saw.closed += 1;
          reject(new acp.RequestError(-32800, "cancelled"));
        });
      });
    }
    const kind = wanted.allow.includes(params.toolCall.kind) ? "allow_once" : "reject_once";
    const { optionId } = params.options.find((each) => each.kind === kind);
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, async ({ params }) => ({ content: await text(params.path) }))
  .onRequest(methods.client.fs.writeTextFile, async ({ params }) => {
    delete saw.buffers[params.path];
    await writeFile(params.path, params.content);
    return {};
  });

const [program, ...words] = wanted.agent;
const agent = spawn(program, words, { cwd: wanted.cwd, stdio: ["pipe", "pipe", "ignore"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await client.connectWith(stream, async (context) => {
  agentContext = context;
  await context.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
  });
  saw.listed = (await context.request(methods.agent.session.list, { cwd: wanted.cwd })).sessions;
  const place = { cwd: wanted.cwd, mcpServers: [] };
  if (wanted.load) {
    await context.request(methods.agent.session.load, { ...place, sessionId: wanted.load });
    saw.sessionId = wanted.load;
  } else {
    saw.sessionId = (await context.request(methods.agent.session.new, place)).sessionId;
  }
  process.stderr.write(`${saw.sessionId}\n`);
  for (const prompt of wanted.prompts) {
    const asked = { sessionId: saw.sessionId, prompt: [{ type: "text", text: prompt }] };
    saw.stops.push((await context.request(methods.agent.session.prompt, asked)).stopReason);
  }
});
agent.kill();
process.stdout.write(JSON.stringify(saw));
