// The controller of main.go in JavaScript, without packages: node examples/folder/folder.mjs FOLDER
import { rm, writeFile } from "node:fs/promises";

const endpoint = `${process.env.SLUICE_SERVER ?? "http://127.0.0.1:8080"}/v1/graphql`;
const finalizer = "example.org/folder";
const folder = process.argv[2];
const pause = (ms) => new Promise((over) => setTimeout(over, ms));

const token = process.env.SLUICE_TOKEN;
const credential = token ? { authorization: `Bearer ${token}` } : {};
const post = (accept, query, variables) => fetch(endpoint, {
  method: "POST",
  headers: { "content-type": "application/json", accept, ...credential },
  body: JSON.stringify({ query, variables }),
});

async function ask(query, variables) {
  const { data, errors } = await (await post("application/json", query, variables)).json();
  if (errors) throw new Error(errors[0].message);
  return data;
}

const watch = `subscription ($after: String) {
  networkChanges(after: $after, snapshot: true) { type cursor network { metadata { namespace name } } }
}`;

// changes yields the metadata of what exists, and then of what changes. It connects again and passes the last cursor.
// The cursor moves after a change was handled, so a change during which the stream breaks comes again.
async function* changes() {
  for (let after = null; ; await pause(500)) {
    try {
      const response = await post("text/event-stream", watch, { after });
      let text = "";
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) {
          const answer = /^event: next\n/m.test(event) && /^data: (.*)$/m.exec(event);
          if (!answer) continue;
          const { data, errors } = JSON.parse(answer[1]);
          if (errors) throw new Error(errors[0].message);
          const { type, cursor, network } = data.networkChanges;
          if (network) yield network.metadata;
          after = type === "RESET" ? null : (cursor ?? after);
        }
      }
    } catch (cause) {
      console.error(`the stream is taken up again: ${cause.message}`);
    }
  }
}

const read = `query ($namespace: String!, $name: String!) {
  network(namespace: $namespace, name: $name) {
    metadata { uid revision generation deletionRequestedAt finalizers }
    specJSON
    status { conditions { type status lastTransitionTime } }
    dependencies { nodes { state } }
    blockedBy(first: 1) { nodes { name } hiddenCount }
  }
}`;
const patch = `mutation ($input: PatchNetworkInput!) {
  patchNetwork(input: $input) { network { metadata { revision } } }
}`;
const report = `mutation ($input: UpdateNetworkStatusInput!) {
  updateNetworkStatus(input: $input) { network { id } }
}`;

// step brings the file of a Network into the state that the Network asks for, and reports that.
async function step({ namespace, name }) {
  const { network } = await ask(read, { namespace, name });
  if (!network) return;
  const { uid, generation, deletionRequestedAt, finalizers, ...metadata } = network.metadata;
  let { revision } = metadata;
  const file = `${folder}/${uid}.json`;
  const hold = async (change) => {
    const answer = await ask(patch, { input: { namespace, name, expectedRevision: revision, ...change } });
    revision = answer.patchNetwork.network.metadata.revision;
  };
  const held = finalizers.includes(finalizer);
  if (deletionRequestedAt) {
    const { nodes, hiddenCount } = network.blockedBy;
    if (!held || finalizers.length > 1 || nodes.length > 0 || hiddenCount > 0) return;
    await rm(file, { force: true });
    return hold({ removeFinalizers: [finalizer] });
  }
  if (network.dependencies.nodes.some(({ state }) => state !== "BOUND")) return;
  if (!held) await hold({ addFinalizers: [finalizer] });
  await writeFile(file, JSON.stringify(network.specJSON));
  const condition = (type, status, message) => {
    const before = network.status?.conditions?.find((c) => c.type === type && c.status === status);
    return {
      type, status, reason: "Success", message, observedGeneration: generation,
      lastTransitionTime: before?.lastTransitionTime ?? new Date().toISOString(),
    };
  };
  const conditions = [
    condition("Available", "True", "The file is there"),
    condition("Progressing", "False", "The file is up to date"),
  ];
  await ask(report, { input: { namespace, name, expectedRevision: revision, status: { cloudId: uid, conditions } } });
}

await ask(`mutation { updateKind(input: { kind: "Network", controlled: true }) { kind { name } } }`);
for await (const network of changes()) {
  for (let ms = 50; ; ms = Math.min(2 * ms, 10_000)) {
    try {
      await step(network);
      break;
    } catch (cause) {
      console.error(`${network.name} is tried again: ${cause.message}`);
      await pause(ms);
    }
  }
}
