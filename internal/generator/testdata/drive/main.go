// Command drive executes operations on the kinds of the test and prints the answers.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	graph "github.com/sluicegw/sluice/graph/v1"
	"github.com/sluicegw/sluice/graph/v1/catalogue"
	resolvers "github.com/sluicegw/sluice/resolvers/v1"
)

func main() {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		panic(err)
	}
	svc, err := service.New(service.Config{Kinds: catalogue.Kinds(), Store: store})
	if err != nil {
		panic(err)
	}
	exec := executor.New(graph.NewExecutableSchema(graph.Config{Resolvers: resolvers.New(svc)}))
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	revision := ""
	for _, query := range strings.Split(strings.TrimSpace(string(raw)), "\n\n") {
		query, _, _ = strings.Cut(query, "\n#")
		query = strings.TrimSpace(query)
		fmt.Println(query)
		query = strings.ReplaceAll(query, "REVISION", revision)
		ctx := graphql.StartOperationTrace(context.Background())
		op, errs := exec.CreateOperationContext(ctx, &graphql.RawParams{Query: query})
		if errs != nil {
			fmt.Printf("# %v\n\n", errs)
			continue
		}
		next, ctx := exec.DispatchOperation(ctx, op)
		answer := next(ctx)
		data := string(answer.Data)
		if _, after, ok := strings.Cut(data, `"revision":"`); ok {
			revision, _, _ = strings.Cut(after, `"`)
			data = strings.ReplaceAll(data, revision, "REVISION")
		}
		fmt.Printf("# %s", data)
		for _, e := range answer.Errors {
			fmt.Printf("\n# %s", e.Message)
		}
		fmt.Print("\n\n")
	}
}
