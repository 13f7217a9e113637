// Package state moves everything that a store has: [Export] writes it to a file, [Bootstrap] fills an
// empty store with it.
//
// A file is gzip, and in it lines of JSON, so `zcat FILE | jq` reads it:
//
//	{"format":"sluice-export","version":1,...}             the header
//	{"kind":"Network","namespace":"default","name":"a",...}  a record, by shard and key
//	{"kind":"Network","namespace":"default","name":"b","deleted":true,...}
//	...
//	{"end":{"lines":2,"sha256":"...",...}}
//
// Records are read page by page while others write. After each page the log is read, and the last
// change of each record that was written before follows as a further line. So a later line about a
// key replaces an earlier one, and all lines together are one state, at the position of the end line.
//
// The end line is a gzip member of its own. Its checksum is of all bytes of the file before that
// member, and the member has one form only. So a file that was cut off or changed anywhere is
// refused.
//
// Records with secrets are sealed by the keyring, bound to their key and uid: those with the values
// of sensitive kinds, and those of other kinds that have, or had, @writeOnly fields.
package state
