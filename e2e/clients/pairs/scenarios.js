// What a page does with a live list and with changes of its own, whatever its client is. It runs in Node and in browsers.
import { resolve } from "@sluicegw/client";

const patience = 10_000;

/** A page of a client, and the gateway beside it. */
class Scene {
  constructor(client, url, namespace) {
    Object.assign(this, { client, url, namespace, list: client.open(namespace) });
  }

  async ask(query, variables) {
    const response = await fetch(this.url, { method: "POST", headers: { "content-type": "application/json", accept: "application/graphql-response+json" }, body: JSON.stringify({ query, variables }) });
    const { data, errors } = await response.json();
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  }

  // theirs is a change of somebody else.
  theirs(resource, name = "a") {
    const spec = { cloudCredentialsRef: { secretName: "cloud-config", cloudName: "openstack" }, resource };
    return this.ask(`mutation ($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { created } }`, { input: { namespace: this.namespace, name, spec } });
  }

  async stored() {
    const { network } = await this.ask(`query ($namespace: String) { network(namespace: $namespace, name: "a") { metadata { revision } spec { resource { mtu description } } } }`, { namespace: this.namespace });
    return network;
  }

  listed() {
    return this.list.getSnapshot().resources.find(({ metadata }) => metadata.name === "a");
  }

  // places says what each place that has the network shows, and at which revision.
  async places() {
    const { status, error } = this.list.getSnapshot();
    const place = (name, network) => `  ${name}: ${network ? `${network.metadata.revision} ${JSON.stringify(network.spec.resource)}` : "without it"}`;
    return [place("gateway", await this.stored()), place(`list (${status}${error ? `, ${error}` : ""})`, this.listed()), place("cache of the page", this.client.cached(this.listed()))].join("\n");
  }

  async until(what, holds) {
    const late = Date.now() + patience;
    while (!(await holds())) {
      if (Date.now() > late) throw new Error(`after ${patience} ms not so: ${what}\n${await this.places()}`);
      await new Promise((again) => setTimeout(again, 5));
    }
  }

  // shown is the value on the page, optimistic changes included.
  shown() {
    return (this.client.optimistically ?? this.client.cached)(this.listed())?.spec.resource.mtu;
  }

  shownAs(mtu) {
    return this.until(`the page shows ${mtu}; it shows ${this.shown()}`, () => this.shown() === mtu);
  }

  stillShows(mtu) {
    if (this.shown() !== mtu) throw new Error(`the page shows ${this.shown()}, not ${mtu} as before`);
  }

  // lists waits until the list has a value.
  lists(mtu) {
    return new Promise((resolve) => {
      const look = () => {
        if (this.listed()?.spec.resource.mtu !== mtu) return;
        stop();
        resolve();
      };
      const stop = this.list.subscribe(look);
      look();
    });
  }

  // shows waits until the list, and what the cache has for the page, are what is stored, and that is the expected.
  async shows(expected) {
    const same = (network, revision) => Object.entries(expected).every(([field, value]) => network?.spec.resource[field] === value) && (!revision || network.metadata.revision === revision);
    const { metadata: { revision } } = await this.stored();
    const wanted = `${revision} ${JSON.stringify(expected)}`;
    await this.until(`the list has ${wanted}`, () => same(this.listed(), revision));
    await this.until(`the cache of the page has ${wanted}`, () => same(this.client.cached(this.listed()), revision));
  }

  save(fields, choose = () => { throw new Error("asked, without a conflict"); }, network = this.listed()) {
    return this.client.save(network, fields, choose);
  }

  optimistic(mtu, network = this.listed()) {
    return this.client.optimistic(network, mtu);
  }
}

/**
 * hold keeps back the answer to the next change of the page itself. `answered` is kept once the gateway has answered.
 * With `unsent`, the request is kept back too, until `send` is called.
 */
function hold({ unsent = false } = {}) {
  const { fetch } = globalThis;
  let release, answer, send;
  const released = new Promise((resolve) => (release = resolve));
  const answered = new Promise((resolve) => (answer = resolve));
  const sent = new Promise((resolve) => (send = resolve));
  if (!unsent) send();
  globalThis.fetch = async (url, options) => {
    if (!String(options?.body).includes("patchNetwork")) return fetch(url, options);
    globalThis.fetch = fetch;
    await sent;
    const response = await fetch(url, options);
    answer();
    await released;
    return response;
  };
  return { answered, send, release };
}

// late makes two changes of the page; each is answered when the list has a later change of somebody else.
async function late(scene, change) {
  for (const mtu of [1300, 1301]) {
    const { answered, release } = hold();
    const changed = change();
    await answered;
    await scene.theirs({ mtu });
    await scene.lists(mtu);
    release();
    await changed;
    await scene.shows({ mtu });
  }
}

const refused = async (promise, code) => {
  const error = await promise.then(() => null, (error) => error);
  if (!error || !JSON.stringify([error, error.errors, error.graphQLErrors, error.extensions, error.source]).includes(code)) throw new Error(`not ${code}: ${error}`);
};

export const scenarios = {
  async "ten optimistic changes in a row, each at the revision of the list"(scene) {
    for (let mtu = 1401; mtu <= 1410; mtu++) {
      await scene.optimistic(mtu);
      await scene.shows({ mtu });
    }
  },
  async "ten saves in a row, without a conflict"(scene) {
    for (let mtu = 1401; mtu <= 1410; mtu++) {
      await scene.save({ mtu });
      await scene.shows({ mtu });
    }
  },
  async "optimistic changes, saves and those of others by turns"(scene) {
    for (let mtu = 1401; mtu <= 1410; mtu += 3) {
      await scene.optimistic(mtu);
      await scene.shows({ mtu });
      await scene.save({ mtu: mtu + 1, description: `d${mtu}` });
      await scene.shows({ mtu: mtu + 1, description: `d${mtu}` });
      await scene.theirs({ mtu: mtu + 2, description: "theirs" });
      await scene.shows({ mtu: mtu + 2, description: "theirs" });
    }
  },
  async "an optimistic change that is refused is taken back"(scene) {
    await refused(scene.optimistic(1), "VALIDATION_FAILED");
    await scene.shows({ mtu: 1500 });
    await scene.optimistic(1400);
    await scene.shows({ mtu: 1400 });
  },
  async "an optimistic change is shown before the gateway has it, and no event undoes it"(scene) {
    const { send, answered, release } = hold({ unsent: true });
    const changed = scene.optimistic(1400);
    await scene.shownAs(1400);
    await scene.theirs({ mtu: 1500 }, "b");
    await scene.until("the event of another network", () => scene.client.names(scene.namespace).includes("b"));
    scene.stillShows(1400);
    send();
    await answered;
    await scene.lists(1400);
    scene.stillShows(1400);
    release();
    await changed;
    scene.stillShows(1400);
    await scene.shows({ mtu: 1400 });
  },
  async "an optimistic change that is refused after an event is taken back, and theirs is shown"(scene) {
    const { send, release } = hold({ unsent: true });
    const conflict = refused(scene.optimistic(1400), "CONFLICT");
    await scene.shownAs(1400);
    await scene.theirs({ mtu: 1300 });
    await scene.lists(1300);
    scene.stillShows(1400);
    send();
    release();
    await conflict;
    await scene.shows({ mtu: 1300 });
    if (scene.shown() !== 1300) throw new Error(`not taken back: ${scene.shown()}`);
  },
  async "an optimistic change at an old revision is a conflict, and theirs is shown"(scene) {
    const before = scene.listed();
    await scene.theirs({ mtu: 1300 });
    await refused(scene.optimistic(1400, before), "CONFLICT");
    await scene.shows({ mtu: 1300 });
    await scene.optimistic(1400);
    await scene.shows({ mtu: 1400 });
  },
  async "a save at an old revision joins what others changed elsewhere"(scene) {
    const before = scene.listed();
    await scene.theirs({ mtu: 1500, description: "theirs" });
    await scene.save({ mtu: 1400 }, undefined, before);
    await scene.shows({ mtu: 1400, description: "theirs" });
  },
  async "a save asks where both changed the same, and the list shows the answer"(scene) {
    for (const [side, mtu] of [["mine", 1400], ["theirs", 1300]]) {
      const before = scene.listed();
      await scene.theirs({ mtu: 1300 });
      await scene.save({ mtu: 1400 }, (merge) => resolve(merge, () => side), before);
      await scene.shows({ mtu });
    }
  },
  async "a save that is given up leaves theirs"(scene) {
    const before = scene.listed();
    await scene.theirs({ mtu: 1300 });
    const error = await scene.save({ mtu: 1400 }, () => null, before).then(() => null, (error) => error);
    if (error?.name !== "ConflictError") throw new Error(`not given up: ${error}`);
    await scene.shows({ mtu: 1300 });
  },
  async "an optimistic change and a save at once"(scene) {
    const network = scene.listed();
    const [changed] = await Promise.allSettled([scene.optimistic(1400, network), scene.save({ description: "saved" }, undefined, network)]);
    await scene.shows({ mtu: changed.status === "fulfilled" ? 1400 : 1500, description: "saved" });
  },
  async "two saves at once"(scene) {
    const network = scene.listed();
    await Promise.all([scene.save({ mtu: 1400 }, undefined, network), scene.save({ description: "saved" }, undefined, network)]);
    await scene.shows({ mtu: 1400, description: "saved" });
  },
  async "changes of others while many optimistic ones are under way"(scene) {
    for (let i = 0; i < 10; i++) await Promise.allSettled([scene.optimistic(1401 + i), scene.theirs({ mtu: 1301 + i })]);
    const { spec: { resource: { mtu } } } = await scene.stored();
    await scene.shows({ mtu });
    await scene.optimistic(1450);
    await scene.shows({ mtu: 1450 });
  },
  async "the answer to an optimistic change arrives after the event of a later change"(scene) {
    await late(scene, () => scene.optimistic(1400));
  },
  async "the answer to a save arrives after the event of a later change"(scene) {
    await late(scene, () => scene.save({ mtu: 1400 }));
  },
  async "the answer to a change arrives while a second one covers it, which is refused"(scene) {
    const first = hold();
    const changed = scene.optimistic(1400);
    await first.answered;
    await scene.lists(1400);
    const seen = scene.listed();
    const second = hold();
    await scene.theirs({ mtu: 1300 });
    await scene.lists(1300);
    const conflict = refused(scene.optimistic(1400, seen), "CONFLICT");
    await second.answered;
    first.release();
    await changed;
    second.release();
    await conflict;
    await scene.shows({ mtu: 1300 });
  },
  async "a window keeps its size, whatever goes and comes, and More shows more"(scene) {
    const { list, namespace } = scene;
    const put = (name) => scene.ask(`mutation ($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { created } }`, { input: { namespace, name, spec: { cloudCredentialsRef: { secretName: "cloud-config", cloudName: "openstack" }, resource: { mtu: 1500 } } } });
    const remove = (name) => scene.ask(`mutation ($input: DeleteNetworkInput!) { deleteNetwork(input: $input) { state } }`, { input: { namespace, name } });
    const listed = () => list.getSnapshot().resources.map(({ metadata: { name } }) => name).join(" ");
    const shown = () => scene.client.names(namespace).join(" ");
    const both = (names) => scene.until(`${names}; the page shows ${shown()}`, () => listed() === names && shown() === names);
    for (let i = 10; i < 40; i++) await put(`n${i}`);
    await both("a n10 n11 n12");
    await remove("n10");
    await both("a n11 n12 n13");
    await put("n39");
    await put("b");
    await both("a b n11 n12");
    for (let i = 11; i < 30; i++) await remove(`n${i}`);
    await both("a b n30 n31");
    await scene.client.more(namespace, list);
    await scene.until(`eight; the page shows ${shown()}`, () => shown() === "a b n30 n31 n32 n33 n34 n35" && listed() === shown());
    await remove("n30");
    await both("a b n31 n32 n33 n34 n35 n36");
    await scene.client.more(namespace, list);
    await both("a b n31 n32 n33 n34 n35 n36 n37 n38 n39");
    await put("n32a");
    await both("a b n31 n32 n32a n33 n34 n35 n36 n37 n38 n39");
  },
};

// run plays a scenario with a client in a namespace of its own, which has the network a.
export async function run(client, url, namespace, name) {
  const scene = new Scene(client, url, namespace);
  try {
    await scene.theirs({ mtu: 1500 });
    await scene.until("live", () => scene.list.getSnapshot().status === "live" && scene.listed());
    await client.show(namespace, scene.list);
    await scenarios[name](scene);
  } finally {
    client.close(scene.list);
    await scene.list.ended;
  }
}
