// Command sluicegen generates the core of the API from schema/core, with gqlgen. The core is the executable schema of
// the fields with handwritten resolvers. Run the command in the root of the module, or by `make generate`.
//
// Kinds are not part of the core. If a field of the core returns a kind, or takes an input that is derived from a kind,
// gqlgen treats that type as a scalar, which package engine implements.
//
// The command also writes the candidate version of the embedded catalogue again, and the Go types of two protocols: the
// contract of resource services (schema/service/v1/resource.proto), and the protocol of KMS plugins
// (schema/kms/v2/kms.proto).
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
