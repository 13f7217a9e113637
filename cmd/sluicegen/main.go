// Command sluicegen generates the API from the annotated SDL in schema/. Run
// it from the root of the module, or by `make generate`.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/internal/generator"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "sluicegen takes no arguments; run it in the root of the module")
		os.Exit(2)
	}
	err := generator.Run("gqlgen.yml")
	var findings kinds.Findings
	switch {
	case errors.As(err, &findings):
		fmt.Fprintln(os.Stderr, findings)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "sluicegen:", err)
		os.Exit(1)
	}
}
