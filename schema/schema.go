// Package schema holds the SDL of the API: in v1 the kinds of its first major
// version, one annotated file each, with the versions of that API, in access the kinds of the product, which every
// catalogue has, and in core the fields that are resolved by hand, in package resolvers.
package schema

import "embed"

// Files are v1/*.graphqls, v1/versions, access/*.graphqls and core/*.graphqls.
//
//go:embed v1/*.graphqls v1/versions access/*.graphqls core/*.graphqls
var Files embed.FS
