// Package engine executes operations of the API. The kinds are data: no Go code is generated for any of them.
//
// An operation is compiled once to a plan: a tree of functions, prepared bytes and slots, which are the positions of
// fields in stored bodies. A run executes the plan in three parts:
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
// The links of an item are written in the order in which they were collected, so item.links is a list, and item.at the
// position of the next link.
//
// A query resolves all root fields, then reads, then writes. A mutation does all three for one root field after the
// other. For an event of a subscription the changed resource is given; its links are read just before it is written
// (writeChanged).
//
// A run belongs to one goroutine. If it cannot go on, because its budget is spent or its context has ended, it panics
// with [halted] at any depth. The panic is recovered by respond for a query, by mutationField for a root field of a
// mutation, and by Answer for an event.
//
// The engine does not call gqlgen's field middleware.
package engine
