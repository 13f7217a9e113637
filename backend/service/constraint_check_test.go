package service_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
)

func TestConstraintCheck_WhatIsStoredAndBreaksWhatWasTightenedIsCounted(t *testing.T) {
	x := func(f float64) *float64 { return &f }
	number := func(most *float64, rules ...descriptor.Rule) descriptor.Kind {
		return ratchetKind(descriptor.Field{Type: descriptor.TypeInt, Constraint: descriptor.Constraint{Max: most}}, rules...)
	}
	for _, inMemory := range []bool{false, true} {
		t.Run(fmt.Sprint("in memory ", inMemory), func(t *testing.T) {
			f := setupKinds(t, number(nil))
			for i := range 1200 {
				f.CreateWidget(fmt.Sprintf("n%04d", i), fmt.Sprintf(`{"title":"A","v":%d}`, i))
			}
			f = f.with(t, number(x(1190)))
			if inMemory {
				f.ServeIndexed()
			}
			tightened := func(next descriptor.Kind, within time.Duration) (out []string) {
				t.Helper()
				found, err := f.with(t, next).Tightened(t.Context(), f.Service, within)
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range found {
					out = append(out, one.String())
				}
				return out
			}
			for name, c := range map[string]struct {
				next descriptor.Kind
				want []string
			}{
				"the same":          {number(x(1190)), nil},
				"a looser one":      {number(x(1195)), nil},
				"a tighter one":     {number(x(1000)), []string{"Widget: stored resources that break what was tightened: 190; the first is Widget/default/n1001: spec.v: must be at most 1000"}},
				"a rule":            {number(x(1190), descriptor.Rule{CEL: "self.v != 7", Message: "seven"}), []string{"Widget: stored resources that break what was tightened: 1; the first is Widget/default/n0007: spec: seven"}},
				"a rule that holds": {number(x(1190), descriptor.Rule{CEL: "self.v >= 0", Message: "negative"}), nil},
			} {
				if got := tightened(c.next, time.Minute); !slices.Equal(got, c.want) {
					t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
				}
			}
			want := []string{"Widget: none of the resources that there was time to look at breaks what was tightened"}
			if got := tightened(number(x(1000)), 0); !slices.Equal(got, want) {
				t.Errorf("without time: %q", got)
			}
		})
	}
	few := service.Tightened{Kind: "Widget", Resources: 3, Why: "spec.v: must be at most 5"}
	few.First.Kind, few.First.Name = "Widget", "a"
	if got := few.String(); got != "Widget: stored resources that break what was tightened: at least 3; the first is Widget/a: spec.v: must be at most 5" {
		t.Error(got)
	}
}
