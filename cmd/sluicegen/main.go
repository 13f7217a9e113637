// Command sluicegen generates the core of the API, the executable schema of the fields that are
// resolved by hand, from schema/core, by gqlgen. Run it from the root of the module, or by
// `make generate`. Kinds have no part in it: where a core field returns one, or takes an input
// that is derived from one, the type is a scalar to gqlgen that package engine stands behind.
//
// It also writes the candidate among the versions of the embedded catalogue again, and the Go types of two protocols:
// the contract of resource services, schema/service/v1/resource.proto, and that of plugins of a KMS,
// schema/kms/v2/kms.proto.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "sluicegen takes no arguments; run it in the root of the module")
		os.Exit(2)
	}
	err := generate("gqlgen.yml")
	if err == nil {
		err = rewriteCandidate("schema/v1")
	}
	if err == nil {
		err = generateTypes("schema/service/v1/resource.proto")
	}
	if err == nil {
		err = generateTypes("schema/kms/v2/kms.proto")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluicegen:", err)
		os.Exit(1)
	}
}
