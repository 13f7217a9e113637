// Package engine executes operations of the API over kinds that are data: no Go
// is generated for any of them.
//
// An operation is compiled once to a plan: a tree of functions, prepared bytes
// and slots, which are the positions of fields in stored bodies. A run executes
// it in three parts:
//
//	resolve the root fields
//	  executeCore     the fields of the core, a schema that gqlgen generates: introspection
//	    |             and fields resolved by hand
//	  resolveRoot     each other one: a resource, a page, a write, ...
//	    |             Each resource becomes an item; items that have links wait in run.next.
//	    v
//	read the links (references and connections), level by level, while items wait
//	  collectLevel    the links of all waiting items
//	  readLevel       one call for all resources, one for all pages, one for all
//	    |             dependencies. What they return are the items of the next level.
//	    v
//	write the answer
//	  writeRoot       object and the writers of fields, recursively, copy spans of the stored bodies
//
// For example { networks { nodes { subnets { nodes { name } } } } }:
//
//	root       a page of networks    items net-a, net-b
//	level 1    net-a  net-b          one call reads both pages of subnets
//	           nothing selected below a subnet is a link: no other level
//
// Writing meets the links of an item in the order in which they were collected,
// so item.links is a list and item.at the position in it.
//
// A query resolves all its root fields, then reads, then writes. A mutation does all
// three for one root field after the other. An event of a subscription comes resolved; the
// links of the changed resource are read when it is about to be written (changeField).
//
// A run belongs to one goroutine. If it must not go on (its budget is spent, or
// nobody waits for the answer), it panics with [halted], however deep it is.
// respond recovers that for a query, mutationField for a root field of a mutation, and
// answer for an event.
//
// The engine calls no field middleware of gqlgen.
package engine
