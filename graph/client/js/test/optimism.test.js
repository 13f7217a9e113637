import assert from "node:assert/strict";
import test from "node:test";
import { Gateway, network, open, page, shows, turn } from "./gateway.js";

const later = () => {
  let settle;
  const promise = new Promise((yes, no) => (settle = { yes, no }));
  return { promise, ...settle };
};

async function live(t, ...resources) {
  const gateway = new Gateway(page(resources));
  const list = open(t, gateway);
  const stream = await gateway.stream();
  stream.send("IN_SYNC", "c1");
  await turn();
  const seen = [];
  list.subscribe(() => seen.push(list.getSnapshot().resources[0]?.mtu));
  return { list, stream, seen };
}

const withMTU = (mtu) => (resource) => ({ ...resource, mtu });

test("an update is shown at once and stays when it is confirmed", async (t) => {
  const { list, stream, seen } = await live(t, network("a", "1", { mtu: 1 }));
  const reply = later();
  const updated = list.update("id-a", { change: withMTU(2), send: (stored, revision) => {
    assert.equal(stored.mtu, 1);
    assert.equal(revision, "1");
    return reply.promise;
  } });
  await turn();
  assert.equal(list.getSnapshot().resources[0].mtu, 2);
  assert.equal(list.stored("id-a").mtu, 1);
  reply.yes(network("a", "2", { mtu: 2 }));
  await updated;
  await turn();
  assert.equal(list.stored("id-a").mtu, 2);
  stream.send("MODIFIED", "c2", network("a", "2", { mtu: 2 }));
  await turn();
  assert.deepEqual([...new Set(seen)], [2]);
});

test("an update that fails is taken back, and the caller hears why", async (t) => {
  const { list, seen } = await live(t, network("a", "1", { mtu: 1 }));
  await assert.rejects(list.update("id-a", { change: withMTU(2), send: async () => { throw new Error("no"); } }), /no/);
  await turn();
  assert.equal(seen.at(-1), 1);
});

test("an earlier change that the stream tells after the payload does not show again", async (t) => {
  const { list, stream, seen } = await live(t, network("a", "1", { mtu: 1 }));
  await list.update("id-a", { change: withMTU(3), send: async () => network("a", "3", { mtu: 3 }) });
  await turn();
  stream.send("MODIFIED", "c2", network("a", "2", { mtu: 1 }));
  await turn();
  stream.send("MODIFIED", "c3", network("a", "3", { mtu: 3 }));
  await turn();
  assert.deepEqual([...new Set(seen)], [3]);
  stream.send("MODIFIED", "c4", network("a", "4", { mtu: 4 }));
  await turn();
  assert.equal(seen.at(-1), 4);
});

test("a payload that comes after a later event does not undo it", async (t) => {
  const { list, stream, seen } = await live(t, network("a", "1", { mtu: 1 }));
  const reply = later();
  const updated = list.update("id-a", { change: withMTU(2), send: () => reply.promise });
  await turn();
  stream.send("MODIFIED", "c2", network("a", "2", { mtu: 2 }));
  stream.send("MODIFIED", "c3", network("a", "3", { mtu: 3 }));
  reply.yes(network("a", "2", { mtu: 2 }));
  await updated;
  await turn();
  assert.equal(seen.at(-1), 3);
});

test("updates of one resource are sent one after the other, each with the revision of the one before", async (t) => {
  const { list } = await live(t, network("a", "1", { mtu: 1 }));
  const revisions = [];
  const send = (mtu, revision) => async (stored, expected) => {
    revisions.push(expected);
    return network("a", revision, { mtu });
  };
  await Promise.all([list.update("id-a", { change: withMTU(2), send: send(2, "2") }), list.update("id-a", { change: withMTU(3), send: send(3, "3") })]);
  await turn();
  assert.deepEqual(revisions, ["1", "2"]);
  assert.equal(list.getSnapshot().resources[0].mtu, 3);
});

test("an update of a resource that the list does not have is refused", async (t) => {
  const { list } = await live(t);
  await assert.rejects(list.update("id-none", { change: withMTU(2), send: async () => null }), /no resource/);
});

test("a resource that is deleted during an update stays away", async (t) => {
  const { list, stream } = await live(t, network("a", "1", { mtu: 1 }));
  const reply = later();
  const updated = list.update("id-a", { change: withMTU(2), send: () => reply.promise });
  await turn();
  stream.send("DELETED", "c2", network("a", "1", { mtu: 1 }));
  reply.yes(network("a", "2", { mtu: 2 }));
  await updated;
  await shows(list, "");
});
