// Package redistest starts real Redis servers for tests: single servers, servers with replicas, with Sentinels, as a
// Cluster, and behind a proxy that loses replies.
//
// A server listens on a free port of 127.0.0.1 and keeps its files in a folder of the test. By default it does not
// persist its data. It is killed when the test ends. On Linux it is also killed when the test process dies. If the test
// fails, the log of the server is printed. If there is no redis-server, the test fails.
//
// Tests that inject no faults can share one server: see [Shared]. Each of them uses its own prefix of keys: see
// [Prefix].
package redistest
