import assert from "node:assert/strict";
import test from "node:test";
import { credentialOf, failureOf, fetchTransport, renewing, streamingTransport } from "../src/index.js";
import { Gateway, network, open, page, shows, turn } from "./gateway.js";

// sourceOf returns one token after the other, and notes which were refused.
function sourceOf(...tokens) {
  const refusals = [];
  let now = tokens.shift();
  return { refusals, source: async (refused) => {
    if (refused !== undefined) refusals.push(refused);
    if (refused === now && tokens.length > 0) now = tokens.shift();
    return now;
  } };
}

const unauthenticated = { errors: [{ message: "the credential is not valid", extensions: { code: "UNAUTHENTICATED" } }] };

// served is a transport by fetch whose gateway accepts some tokens.
function served(credential, ...accepted) {
  const seen = [];
  const fetch = async (url, { headers }) => {
    const token = headers.get("authorization")?.replace("Bearer ", "");
    seen.push(token);
    return accepted.includes(token) ? Response.json({ data: { by: token } }) : Response.json(unauthenticated, { status: 401 });
  };
  return { seen, transport: renewing(fetchTransport({ url: "https://gateway/v1/graphql", headers: credential.authorization, fetch }), credential) };
}

test("a request with a refused token is sent once more, with another", async () => {
  for (const [tokens, sent, answer] of [
    [["good"], "good", { data: { by: "good" } }],
    [["old", "good"], "old good", { data: { by: "good" } }],
    [["old"], "old", unauthenticated],
    [["old", "older", "good"], "old older", unauthenticated],
    [[undefined], "", unauthenticated],
  ]) {
    const { source } = sourceOf(...tokens);
    const { seen, transport } = served(credentialOf(source), "good");
    assert.deepEqual(await transport.query("mutation { a }", {}, {}), answer, tokens.join());
    assert.equal(seen.join(" "), sent);
  }
});

test("several requests that are refused at once ask for one other token", async () => {
  const { source, refusals } = sourceOf("old", "good");
  const { transport } = served(credentialOf(source), "good");
  const answers = await Promise.all([1, 2, 3].map(() => transport.query("{ a }", {}, {})));
  assert.deepEqual(answers.map(({ data }) => data.by), ["good", "good", "good"]);
  assert.deepEqual(refusals, ["old"]);
});

test("a source that keeps nothing is asked for each request, and its refused token is not sent again", async () => {
  const { seen, transport } = served(credentialOf((refused) => (refused ? "good" : "old")), "good");
  await transport.query("{ a }", {}, {});
  await transport.query("{ a }", {}, {});
  assert.deepEqual(seen, ["old", "good", "good"]);
});

test("the 401 of a proxy says so", async () => {
  const fetch = async () => new Response("<html>", { status: 401, headers: { "content-type": "text/html" } });
  await assert.rejects(fetchTransport({ url: "https://gateway/", fetch }).query("{ a }", {}, {}), { status: 401, message: /a proxy in front of it/ });
});

// socketOf is a client of a WebSocket: each connection sends what authorization says.
function socketOf(credential) {
  const gateway = new Gateway(page([network("a", "1")]));
  const sent = [];
  const client = { subscribe: ({ query, variables }, sink) => {
    credential.authorization().then(({ authorization }) => sent.push(authorization));
    return gateway.subscribe(query, variables, sink);
  } };
  return { gateway, sent, transport: renewing(streamingTransport(gateway, client), credential) };
}

const closed = (reason) => ({ code: 4403, reason });

for (const [way, end] of [
  ["a WebSocket", (stream) => stream.sink.error(closed("UNAUTHENTICATED: the credential has expired"))],
  ["an event stream", (stream) => (stream.sink.next(unauthenticated), stream.sink.complete())],
]) {
  test(`a live list by ${way} goes on with another token after its cursor`, async (t) => {
    const credential = credentialOf(sourceOf("one", "two", "three").source);
    const { gateway, sent, transport } = socketOf(credential);
    const list = open(t, transport);
    let stream = await gateway.stream();
    stream.send("IN_SYNC", "c1");
    await shows(list, "a");
    end(stream);
    stream = await gateway.stream(1);
    assert.equal(stream.variables.after, "c1");
    stream.send("ADDED", "c2", network("b", "2"));
    stream.send("IN_SYNC", "c2");
    await shows(list, "a,b");
    end(stream);
    stream = await gateway.stream(2);
    assert.equal(stream.variables.after, "c2");
    stream.send("IN_SYNC", "c2");
    await shows(list, "a,b");
    assert.deepEqual(sent, ["Bearer one", "Bearer two", "Bearer three"]);
  });

  test(`a live list by ${way} fails if the other token is refused too, or if there is none`, async (t) => {
    for (const tokens of [["one", "two", "three"], ["one"]]) {
      const { gateway, transport } = socketOf(credentialOf(sourceOf(...tokens).source));
      const list = open(t, transport);
      const stream = await gateway.stream();
      stream.send("IN_SYNC", "c1");
      await shows(list, "a");
      end(stream);
      if (tokens.length > 1) end(await gateway.stream(1));
      await shows(list, "a", "failed");
      assert.equal(list.getSnapshot().error.code, "UNAUTHENTICATED");
      assert.equal(gateway.streams.length, Math.min(tokens.length, 2));
    }
  });
}

test("a source that fails is asked again", async (t) => {
  let away = true;
  const { source } = sourceOf("one", "two");
  const credential = credentialOf(async (refused) => {
    if (refused && away) {
      away = false;
      throw new Error("the issuer does not answer");
    }
    return source(refused);
  });
  const { gateway, transport } = socketOf(credential);
  const list = open(t, transport);
  for (let n = 0; n < 2; n++) {
    const stream = await gateway.stream(n);
    if (n === 0) stream.send("IN_SYNC", "c1");
    await turn();
    stream.sink.error(closed("UNAUTHENTICATED: the credential was revoked"));
  }
  (await gateway.stream(2)).send("IN_SYNC", "c1");
  await shows(list, "a");
});

test("a client that ends a subscription while its token is replaced hears nothing more", async () => {
  let answer;
  const credential = credentialOf((refused) => (refused ? new Promise((resolve) => (answer = resolve)) : "one"));
  const { gateway, transport } = socketOf(credential);
  const heard = [];
  const stop = transport.subscribe("s", {}, { next: (r) => heard.push(r), error: (e) => heard.push(e), complete: () => heard.push("complete") });
  await turn();
  gateway.streams[0].sink.error(closed("UNAUTHENTICATED: the credential has expired"));
  await turn();
  stop();
  answer("two");
  await turn();
  assert.deepEqual(heard, []);
});

test("a close whose reason begins with a code is an error of the API", () => {
  const { code, message, status } = failureOf(closed("UNAUTHENTICATED: the credential has expired"));
  assert.deepEqual([code, message, status], ["UNAUTHENTICATED", "the credential has expired", 4403]);
});

// wrapped is what Apollo's GraphQLWsLink and urql's subscriptionExchange make of a close. e2e/clients has the link itself.
const wrapped = {
  Apollo: ({ code, reason }) => new Error(`Socket closed with event ${code} ${reason}`),
  urql: (event) => Object.assign(new Error("[Network] undefined"), { graphQLErrors: [], networkError: event }),
};

for (const [name, wrap] of Object.entries(wrapped)) {
  test(`a close that ${name} tells of is the same Failure as the event`, () => {
    for (const event of [
      closed("UNAUTHENTICATED: the token is not known, or was revoked"),
      { code: 4403, reason: "FORBIDDEN: a line\nand another" },
      { code: 4400, reason: "not a message" },
      { code: 1006, reason: "" },
    ]) {
      const told = failureOf(wrap(event)), seen = failureOf(event);
      for (const key of ["message", "code", "status", "errors"]) assert.deepEqual(told[key], seen[key], `${event.reason}: ${key}`);
    }
  });

  test(`a live list gets another token when ${name} tells of a refused one, and fails without renewing`, async (t) => {
    const refuse = (stream) => stream.sink.error(wrap(closed("UNAUTHENTICATED: the token is not known, or was revoked")));
    const { source, refusals } = sourceOf("one", "two");
    const { gateway, transport } = socketOf(credentialOf(source));
    const list = open(t, transport);
    const first = await gateway.stream();
    first.send("IN_SYNC", "c1");
    await shows(list, "a");
    refuse(first);
    const next = await gateway.stream(1);
    assert.equal(next.variables.after, "c1");
    next.send("IN_SYNC", "c2");
    await shows(list, "a");
    assert.deepEqual(refusals, ["one"]);

    const bare = new Gateway(page([network("a", "1")]));
    const failing = open(t, bare);
    const stream = await bare.stream();
    stream.send("IN_SYNC", "c1");
    refuse(stream);
    await shows(failing, "a", "failed");
    assert.equal(failing.getSnapshot().error.code, "UNAUTHENTICATED");
  });

  test(`a live list fails when ${name} tells of a final close`, async (t) => {
    const gateway = new Gateway(page([network("a", "1")]));
    const list = open(t, gateway);
    const stream = await gateway.stream();
    stream.send("IN_SYNC", "c1");
    stream.sink.error(wrap({ code: 4400, reason: "not a message" }));
    await shows(list, "a", "failed");
  });
}

test("a message that only looks like that of a close has no code and no status", () => {
  for (const message of [
    "Socket closed",
    "Socket closed with event",
    "Socket closed with event 44030 UNAUTHENTICATED: no",
    "Socket closed with event 4403: UNAUTHENTICATED: no",
    "Error: Socket closed with event 4403 UNAUTHENTICATED: no",
    "first line\nSocket closed with event 4403 UNAUTHENTICATED: no",
  ]) {
    const { code, status, message: told } = failureOf(new Error(message));
    assert.deepEqual([code, status, told], [undefined, undefined, message]);
  }
  assert.equal(failureOf(null).message, "the connection was lost");
  assert.equal(failureOf("cut").status, undefined);
});

test("what Apollo throws for an answer that is not one of GraphQL has its status", () => {
  assert.equal(failureOf(Object.assign(new Error("Response not successful"), { statusCode: 401 })).status, 401);
  assert.equal(failureOf(Object.assign(new Error("Response not successful"), { networkError: { statusCode: 401 } })).status, 401);
});

test("what graphql-sse throws has the status of its answer", () => {
  assert.equal(failureOf(Object.assign(new Error("Unauthorized"), { response: { status: 401 } })).status, 401);
});
