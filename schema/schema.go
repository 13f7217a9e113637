// Package schema has the SDL of the API. The folder v1 has the kinds of the first major version, each in an annotated
// file, and the released versions of this API. The folder access has the kinds of the product itself, which every
// catalogue has. The folder core has the fields that package resolvers implements by hand.
package schema

import "embed"

// Files are v1/*.graphqls, v1/versions, access/*.graphqls and core/*.graphqls.
//
//go:embed v1/*.graphqls v1/versions access/*.graphqls core/*.graphqls
var Files embed.FS
