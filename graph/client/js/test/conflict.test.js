import assert from "node:assert/strict";
import test from "node:test";
import { ConflictError, Failure, failureOf, merge, resolve, saveMerged, unwrap } from "../src/index.js";

test("a field that one side changed has that side's value", () => {
  const base = { mtu: 1500, tags: ["x"], resource: { name: "a", shared: false } };
  const mine = { mtu: 9000, tags: ["x"], resource: { name: "a", shared: true } };
  const theirs = { mtu: 1500, tags: ["x", "y"], resource: { name: "b", shared: false } };
  const out = merge(base, mine, theirs);
  assert.deepEqual(out.merged, { mtu: 9000, tags: ["x", "y"], resource: { name: "b", shared: true } });
  assert.deepEqual(out.conflicts, []);
  assert.deepEqual(out.mine.map(String), ["mtu", "resource,shared"]);
  assert.deepEqual(out.theirs.map(String), ["tags", "resource,name"]);
});

test("a field that both changed is a conflict, unless both changed it alike", () => {
  const out = merge({ a: 1, b: 1 }, { a: 2, b: 2 }, { a: 3, b: 2 });
  assert.deepEqual(out.conflicts, [{ path: ["a"], base: 1, mine: 2, theirs: 3 }]);
  assert.deepEqual(resolve(out, () => "mine"), { a: 2, b: 2 });
  assert.deepEqual(resolve(out, () => "theirs"), { a: 3, b: 2 });
});

test("null is the same as absent, and clearing is a change", () => {
  assert.deepEqual(merge({ a: null }, {}, { a: null, b: 1 }).merged, { a: null, b: 1 });
  assert.deepEqual(merge({ a: 1, b: 1 }, { a: null, b: 1 }, { a: 1, b: 2 }).merged, { a: null, b: 2 });
  const [conflict] = merge({ a: { b: 1 } }, { a: null }, { a: { b: 2 } }).conflicts;
  assert.deepEqual(conflict.path, ["a"]);
});

test("clearing as the answer to a conflict clears", () => {
  const out = merge({ a: { b: 1, c: 1 } }, { a: { c: 1 } }, { a: { b: 2, c: 1 } });
  assert.deepEqual(resolve(out, () => "mine"), { a: { c: 1 } });
});

test("lists are compared as a whole", () => {
  const [conflict] = merge({ l: [1] }, { l: [1, 2] }, { l: [1, 3] }).conflicts;
  assert.deepEqual(conflict, { path: ["l"], base: [1], mine: [1, 2], theirs: [1, 3] });
});

test("fields that both sides add to a new object are joined", () => {
  assert.deepEqual(merge({}, { a: { b: 1 } }, { a: { c: 2 } }).merged, { a: { c: 2, b: 1 } });
});

test("__typename of a client is left out, and names like __proto__ are ordinary", () => {
  assert.deepEqual(merge({ __typename: "S", a: 1 }, { __typename: "S", a: 2 }, { __typename: "S", a: 1 }).merged, { a: 2 });
  const odd = JSON.parse('{"__proto__": {"polluted": 1}}');
  assert.ok(Object.hasOwn(merge({}, odd, {}).merged, "__proto__"));
  assert.equal({}.polluted, undefined);
});

test("values of the caller are not changed", () => {
  const freeze = (v) => (typeof v === "object" && v ? Object.freeze(Object.fromEntries(Object.entries(v).map(([k, i]) => [k, freeze(i)]))) : v);
  const out = merge(freeze({ a: { b: 1 } }), freeze({ a: { b: 2 } }), freeze({ a: { b: 3 } }));
  resolve(out, () => "mine");
});

// store is a resource that others may change, as the gateway treats it.
function store(value) {
  const stored = { value, revision: "1" };
  return {
    stored,
    read: async () => ({ ...stored }),
    write: async (next, expected) => {
      if (expected !== stored.revision) throw new Failure("conflict", { errors: [{ message: "conflict", extensions: { code: "CONFLICT", currentRevision: stored.revision } }] });
      Object.assign(stored, { value: next, revision: String(Number(stored.revision) + 1) });
      return stored.revision;
    },
    change: (next) => Object.assign(stored, { value: next, revision: String(Number(stored.revision) + 1) }),
  };
}

test("saveMerged joins what others changed elsewhere, without asking", async () => {
  const s = store({ a: 1, b: 1 });
  s.change({ a: 1, b: 2 });
  assert.equal(await saveMerged({ base: { a: 1, b: 1 }, mine: { a: 9, b: 1 }, revision: "1", ...s }), "3");
  assert.deepEqual(s.stored.value, { a: 9, b: 2 });
});

test("saveMerged asks where both changed the same", async () => {
  for (const [choice, a] of [["mine", 9], ["theirs", 5]]) {
    const s = store({ a: 1 });
    s.change({ a: 5 });
    await saveMerged({ base: { a: 1 }, mine: { a: 9 }, revision: "1", ...s, resolve: (m) => resolve(m, () => choice) });
    assert.equal(s.stored.value.a, a);
  }
});

test("saveMerged meets another writer while it asks", async () => {
  const s = store({ a: 1, b: 1 });
  s.change({ a: 5, b: 1 });
  let asked = 0;
  const ask = (m) => {
    if (++asked === 1) s.change({ a: 5, b: 7 });
    return resolve(m, () => "mine");
  };
  await saveMerged({ base: { a: 1, b: 1 }, mine: { a: 9, b: 1 }, revision: "1", ...s, resolve: ask });
  assert.deepEqual(s.stored.value, { a: 9, b: 7 });
  assert.equal(asked, 1);
});

test("saveMerged gives up with the conflicts, and after so many attempts", async () => {
  const s = store({ a: 1 });
  s.change({ a: 5 });
  await assert.rejects(saveMerged({ base: { a: 1 }, mine: { a: 9 }, revision: "1", ...s }), (e) => e instanceof ConflictError && e.conflicts[0].theirs === 5 && /a/.test(e.message));
  let writes = 0;
  const never = { read: s.read, write: () => (writes++, s.write(null, "none")) };
  await assert.rejects(saveMerged({ base: { a: 5 }, mine: { a: 9 }, revision: "1", ...never, attempts: 3 }), ConflictError);
  assert.equal(writes, 3);
});

test("saveMerged passes other errors on", async () => {
  const write = async () => { throw new Failure("no", { errors: [{ message: "no", extensions: { code: "NOT_FOUND" } }] }); };
  await assert.rejects(saveMerged({ base: {}, mine: {}, revision: "1", write, read: async () => assert.fail("read") }), { code: "NOT_FOUND" });
});

test("the errors of all clients have their code", () => {
  const errors = [{ message: "m", extensions: { code: "CONFLICT", currentRevision: "7" } }];
  for (const error of [errors, { errors }, { graphQLErrors: errors }, { source: { errors } }, { cause: { errors } }]) {
    assert.equal(failureOf(error).code, "CONFLICT");
    assert.equal(failureOf(error).extensions.currentRevision, "7");
  }
  assert.equal(failureOf({ code: 4403, reason: "credentials" }).status, 4403);
  assert.match(failureOf(new TypeError("fetch failed")).message, /fetch failed/);
  assert.throws(() => unwrap({ data: null, errors }), { code: "CONFLICT" });
});
