// Package state moves the contents of a store: [Export] writes everything to a file, and [Bootstrap] fills an empty
// store from the file.
//
// A file consists of lines of JSON, compressed by gzip, so `zcat FILE | jq` reads it:
//
//	{"format":"sluice-export","version":1,...}             the header
//	{"kind":"Network","namespace":"default","name":"a",...}  a record, by shard and key
//	{"kind":"Network","namespace":"default","name":"b","deleted":true,...}
//	...
//	{"end":{"lines":2,"sha256":"...",...}}
//
// Records are read in pages while other processes write. After each page the log is read. If a record that is already
// in the file has changed, its last change is added as a further line. So a later line for a key replaces an earlier
// one, and all lines together are the state of the store at the position in the end line.
//
// The end line is a separate gzip member, which has exactly one valid form. Its checksum covers all bytes before it. So
// a file that was cut off or changed at any place is refused.
//
// Records with secrets are encrypted by the keyring. These are the values of sensitive kinds, and resources of other
// kinds that have, or once had, @writeOnly fields.
package state
