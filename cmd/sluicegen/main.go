// Command sluicegen generates the core of the API from schema/core. Run it from
// the root of the module, or by `make generate`.
package main

import (
	"fmt"
	"os"

	"github.com/sluicegw/sluice/internal/generator"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "sluicegen takes no arguments; run it in the root of the module")
		os.Exit(2)
	}
	if err := generator.Run("gqlgen.yml"); err != nil {
		fmt.Fprintln(os.Stderr, "sluicegen:", err)
		os.Exit(1)
	}
}
