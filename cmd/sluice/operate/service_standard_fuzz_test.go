package operate

import (
	"io"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// FuzzServicePull pulls damaged descriptors. A catalogue accepts the SDL of the kinds that are not refused.
func FuzzServicePull(f *testing.F) {
	f.Add(standardtest.Compile(f, nil, standardtest.FooFile))
	f.Add(standardtest.Compile(f, nil, standardtest.LibraryFile))
	f.Add(compileClashing(f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := standard.ReadDescriptors(raw)
		if err != nil {
			return
		}
		p := servicePull{std: terminal.Streams{Out: io.Discard, Err: io.Discard}, to: "foos.graphqls"}
		p.standard.maxText = standard.DefaultLength
		p.standard.maxItems = standard.DefaultItems
		limits, err := standardLimits(p.standard.maxText, p.standard.maxItems)
		if err != nil {
			t.Fatal(err)
		}
		given := &standard.Mapping{}
		pulled, err := d.Catalogue("foos", nil, given, limits)
		if err != nil {
			return
		}
		pulled, err = p.withoutUnservable(d, pulled, given, "foos")
		if err != nil {
			t.Fatal(err)
		}
		p.explain(pulled)
		if len(pulled.Kinds) == 0 {
			return
		}
		if _, err := p.check(pulled.SDL, "foos"); err != nil {
			t.Errorf("%v\n%s", err, pulled.SDL)
		}
		if _, err := pulled.Mapping.YAML(); err != nil {
			t.Error(err)
		}
	})
}
