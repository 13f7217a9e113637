// Package redistest starts real Redis servers for tests: single ones, with
// replicas, under Sentinel, as a Cluster, and behind a proxy that loses replies.
//
// A server listens on a free port of 127.0.0.1, keeps its files in a folder of
// the test, persists nothing unless asked, and is killed when the test ends or
// the test process dies. What it logged is printed if the test failed. Where
// redis-server is missing the test fails; nothing is skipped.
//
// Tests that inject no faults share one server by [Shared], each under a key
// prefix of its own, see [Prefix].
package redistest
