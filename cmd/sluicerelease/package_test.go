package main

import "testing"

func TestPackageVersion_OrdersAsReleasesDo(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":            "1.2.3",
		"1.2.3":             "1.2.3",
		"v1.2.3-rc.1":       "1.2.3~rc.1",
		"v1.2.3-4-gabc1234": "1.2.3+4.gabc1234",
		"v1.2.3-rc.1-9-gab": "1.2.3~rc.1+9.gab",
		"v1.2.3-dirty":      "1.2.3+dirty",
		"1bdf827c":          "0.0.0~1767225600.1bdf827c",
		"77113c1a-dirty":    "0.0.0~1767225600.77113c1a.dirty",
		"v1.2.3-rc.1-dirty": "1.2.3~rc.1+dirty",
	} {
		if got := packageVersion(version, 1767225600); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
