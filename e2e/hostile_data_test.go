//go:build hostile

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// hostileKinds are kinds whose resources are large, or whose rules take long.
const hostileKinds = `type Blob @resource(plural: "blobs", group: "example.com", version: "v1", scope: NAMESPACED) { spec: BlobSpec! }
type BlobSpec { text: String @constraint(maxLength: 1000000) }

type Loop @resource(plural: "loops", group: "example.com", version: "v1", scope: NAMESPACED) { spec: LoopSpec! }
type LoopSpec @rule(cel: "[1,2,3,4,5,6,7,8,9,10].all(a,[1,2,3,4,5,6,7,8,9,10].all(b,[1,2,3,4,5,6,7,8,9,10].all(c,[1,2,3,4,5,6,7,8,9,10].all(d,[1,2,3,4,5,6,7,8,9,10].all(e,[1,2,3,4,5,6,7,8,9,10].all(f,[1,2,3,4,5,6,7,8,9,10].all(g,[1,2,3,4,5,6,7,8,9,10].all(h,true))))))))", message: "never") { a: String @constraint(maxLength: 10) }

type Uniq @resource(plural: "uniqs", group: "example.com", version: "v1", scope: NAMESPACED) { spec: UniqSpec! }
type UniqSpec @rule(cel: "self.a.all(x, self.a.exists_one(y, y == x))", message: "elements differ") { a: [String!]! @list(type: ATOMIC) @constraint(maxItems: 20000, maxLength: 100) }

type Cube @resource(plural: "cubes", group: "example.com", version: "v1", scope: NAMESPACED) { spec: CubeSpec! }
type CubeSpec @rule(cel: "self.a.all(x, self.a.all(y, self.a.all(z, x + y + z != 'abc')))", message: "no abc") { a: [String!]! @list(type: ATOMIC) @constraint(maxItems: 1000, maxLength: 1000) }

type Cat @resource(plural: "cats", group: "example.com", version: "v1", scope: NAMESPACED) { spec: CatSpec! }
type CatSpec @rule(cel: "(self.a+self.a+self.a+self.a+self.a+self.a+self.a+self.a+self.a+self.a).size() > 1 && [1,2,3,4,5,6,7,8,9,10].all(i, [1,2,3,4,5,6,7,8,9,10].all(j, (self.a+self.a+self.a+self.a+self.a+self.a+self.a+self.a).size()>i+j))", message: "never") { a: String! @constraint(maxLength: 1000000) }
`

// besieged are data folders that gateways under attack begin with, each filled when
// it is first needed.
type besieged struct {
	t         *testing.T // which has the folders
	catalogue string
	mu        sync.Mutex
	folders   map[data]string
}

// data is what a gateway under attack has stored.
type data int

const (
	small data = iota // 1,000 ports of one network
	blobs             // those, and 40 resources of a megabyte
	large             // 10,000 ports of one network, and 20 resources of a megabyte
)

// folder returns the folder of some data.
func (b *besieged) folder(of data) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.folders[of] == "" {
		dir := b.t.TempDir()
		ports, megabytes := 1000, 0
		switch of {
		case blobs:
			megabytes = 40
		case large:
			ports, megabytes = 10_000, 20
		}
		b.fill(dir, ports, megabytes)
		b.folders[of] = dir
	}
	return b.folders[of]
}

// portSpec is the spec of all ports, for the name of a cloud.
const portSpec = `spec: {cloudCredentialsRef: {secretName: "s", cloudName: "%s"}, resource: {networkRef: "net", addresses: []}}`

// fill writes ports and resources of a megabyte to a folder.
func (b *besieged) fill(dir string, ports, megabytes int) {
	b.t.Helper()
	g := start(b.t, dir, "--catalogue", b.catalogue)
	g.must(`mutation { upsertNetwork(input: {name: "net", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { created } }`)
	g.must(`mutation { createSecret(input: {name: "s", spec: {stringData: [{key: "a", value: "b"}]}}) { secret { id } } }`)
	const together = 50
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := worker * together; i < ports; i += 4 * together {
				var q strings.Builder
				for n := i; n < i+together; n++ {
					fmt.Fprintf(&q, `p%d: createPort(input: {name: "port-%d", labels: [{key: "n", value: "%d"}], `+portSpec+`}) { warnings { code } } `, n, n, n%100, "c")
				}
				g.must(`mutation { ` + q.String() + `}`)
			}
		})
	}
	all.Wait()
	for i := range megabytes {
		g.blob(b.t, fmt.Sprint("blob-", i), i)
	}
	if code := g.stop(); code != 0 {
		b.t.Fatalf("exit code %d", code)
	}
}

// start runs a gateway on its defaults over a copy of a folder.
func (b *besieged) start(t *testing.T, from data, args ...string) *gateway {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(b.folder(from))); err != nil {
		t.Fatal(err)
	}
	g := start(t, dir, append([]string{"--catalogue", b.catalogue}, args...)...)
	g.must(`{ ports(first: 20) { nodes { id } } }`)
	return g
}

// blob writes a resource of a megabyte.
func (g *gateway) blob(t *testing.T, name string, version int) {
	t.Helper()
	text := strings.Repeat(fmt.Sprintf("%010d", version), 99_000)
	if a := g.post(`mutation($text: String, $name: String!) { upsertBlob(input: {name: $name, spec: {text: $text}}) { created } }`, map[string]any{"name": name, "text": text}); a.codes() != "" {
		t.Fatalf("%+v", a.Errors)
	}
}
