// The page's own client of the API: requests by POST, and subscriptions by
// graphql-transport-ws, one socket each.
"use strict";
(() => {
  const { data, session } = window.sluice;

  // How often a query is sent again at most, and the longest time, in seconds, that the gateway may ask the page to wait for that.
  const retries = 3;
  const longest = 30;

  // waitsFor is the time in seconds after which to send a request again; undefined if there is an answer, or nothing says when.
  function waitsFor(response, answer) {
    const { code, retryAfter = Number(response.headers.get("retry-after")) } = answer?.errors?.[0]?.extensions ?? {};
    return response.status === 503 && code === "UNAVAILABLE" && retryAfter > 0 && retryAfter <= longest ? retryAfter : undefined;
  }

  // later waits that long and, so that pages do not all come back at once, up to a bound more that doubles each time.
  function later(seconds, attempt, signal) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, 1000 * (seconds + Math.random() * 2 ** attempt));
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      }, { once: true });
    });
  }

  // post sends a query or mutation and gives the response, whatever its status. If the credential of the
  // page is not accepted any more, it waits for another one. A query, which repeatable says, is sent again while the
  // gateway is not available and says for how long.
  async function post(payload, { headers, signal, repeatable = false } = {}) {
    for (let attempt = 0; ; attempt++) {
      const { response, answer } = await send(payload, headers, signal);
      const seconds = repeatable && attempt < retries ? waitsFor(response, answer) : undefined;
      if (seconds === undefined) return answer;
      await later(seconds, attempt, signal);
    }
  }

  async function send(payload, headers, signal) {
    const request = {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/graphql-response+json, application/json;q=0.9" },
      body: JSON.stringify(payload),
      signal,
    };
    const token = session.token();
    let response = await session.send(data.endpoint, request);
    if (response.status === 401 && !session.hasOwn(headers)) {
      await session.renewed(token, (await response.json().catch(() => null))?.errors?.[0]?.message ?? "a credential is needed");
      response = await session.send(data.endpoint, request);
    }
    const text = await response.text();
    try {
      return { response, answer: JSON.parse(text) };
    } catch {
      throw new Error(`the gateway answered ${response.status} ${response.statusText} and no JSON: ${text.slice(0, 500)}`);
    }
  }

  // Close codes after which the same request would fail again.
  const fatal = new Set([1002, 1009, 1011, 4400, 4401, 4403, 4406, 4409, 4429, 4500]);
  const attempts = 10;
  // refused begins the reason of a close with 4403 after which another credential helps.
  const refused = "UNAUTHENTICATED: ";

  // cursorOf finds the cursor of an event, if it selects one.
  function cursorOf(response) {
    for (const event of Object.values(response?.data ?? {})) {
      if (event?.cursor) return event.cursor;
    }
    return null;
  }

  // subscribe calls sink.next for each response, and then sink.error or
  // sink.complete once. It returns a function that stops. After a lost connection it
  // goes on from the last cursor, if the operation has a variable $after; it tells
  // sink.state "waiting" and "live", and "login" while it waits for another credential.
  function subscribe(payload, sink, { headers } = {}) {
    const url = new URL(data.endpoint, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const resumes = /\$after\b/.test(payload.query);
    let socket, token, timer, cursor = null, received = 0, failures = 0, over = false;

    const send = (message) => socket.send(JSON.stringify(message));
    function end(tell) {
      if (over) return;
      over = true;
      clearTimeout(timer);
      if (socket.readyState <= WebSocket.OPEN) socket.close(1000);
      tell?.();
    }
    function receive(message) {
      switch (message.type) {
        case "connection_ack": {
          failures = 0;
          sink.state?.("live");
          const variables = cursor ? { ...payload.variables, after: cursor } : payload.variables;
          send({ id: "1", type: "subscribe", payload: { ...payload, variables } });
          break;
        }
        case "ping":
          send({ type: "pong" });
          break;
        case "next":
          received++;
          cursor = cursorOf(message.payload) ?? cursor;
          sink.next(message.payload);
          break;
        case "error":
          end(() => {
            sink.next({ errors: message.payload });
            sink.complete();
          });
          break;
        case "complete":
          end(() => sink.complete());
          break;
      }
    }
    function open() {
      socket = new WebSocket(url, "graphql-transport-ws");
      socket.onopen = () => {
        token = session.token();
        send({ type: "connection_init", payload: session.authorized(headers) });
      };
      socket.onmessage = (event) => { if (!over) receive(JSON.parse(event.data)); };
      socket.onclose = (event) => {
        if (over) return;
        const why = `the connection was closed (${event.code}${event.reason ? `: ${event.reason}` : ""})`;
        const ended = event.code === 4403 && event.reason.startsWith(refused) && !session.hasOwn(headers);
        const renewed = ended && session.renewed(token, event.reason.slice(refused.length));
        if (fatal.has(event.code) && !ended || ++failures > attempts) return end(() => sink.error(new Error(why)));
        if (received > 0 && !(resumes && cursor)) {
          return end(() => sink.error(new Error(`${why}; with a variable $after, and the field cursor selected, the page resumes by itself`)));
        }
        sink.state?.(ended ? "login" : "waiting");
        if (ended) return renewed.then(() => { if (!over) open(); });
        timer = setTimeout(open, Math.random() * Math.min(5000, 500 * 2 ** (failures - 1)));
      };
    }
    open();
    return () => {
      if (!over && socket.readyState === WebSocket.OPEN) send({ id: "1", type: "complete" });
      end();
    };
  }

  Object.assign(window.sluice, { post, subscribe });
})();
