// What a page needs to show resources of a Sluice gateway live, and to change them.
export { liveList, LiveList } from "./live.js";
export { changes } from "./changes.js";
export { compareBy } from "./order.js";
export { credentialOf, renewing } from "./credential.js";
export { merge, resolve, saveMerged, ConflictError } from "./conflict.js";
export { Failure, failureOf, unwrap } from "./failure.js";
export { fetchTransport, streamingTransport } from "./transport.js";
export { webStorage } from "./storage.js";

/** @template T @typedef {import("./settings.js").Options<T>} Options */
/** @template T @typedef {import("./settings.js").Snapshot<T>} Snapshot */
/** @typedef {import("./settings.js").Change} Change */
/** @template T @typedef {import("./storage.js").Storage<T>} Storage */
/** @template T @typedef {import("./storage.js").Saved<T>} Saved */
/** @typedef {import("./changes.js").Changes} Changes */
/** @typedef {import("./backoff.js").Pauses} Pauses */
/** @typedef {import("./order.js").Criterion} Criterion */
/** @typedef {import("./transport.js").Transport} Transport */
/** @typedef {import("./transport.js").FetchOptions} FetchOptions */
/** @typedef {import("./deprecation.js").Deprecation} Deprecation */
/** @typedef {import("./deprecation.js").OnDeprecation} OnDeprecation */
/** @typedef {import("./credential.js").Credential} Credential */
/** @typedef {import("./credential.js").TokenSource} TokenSource */
/** @typedef {import("./conflict.js").Conflict} Conflict */
/** @template T @typedef {import("./conflict.js").Merge<T>} Merge */
