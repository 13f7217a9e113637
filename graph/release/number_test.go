package release_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/release"
)

func TestParseNumber_TakesOneSpelling(t *testing.T) {
	for _, text := range []string{"v1.0", "v1.10", "v12.3"} {
		n, err := release.ParseNumber(text)
		if err != nil || n.String() != text {
			t.Errorf("%s: %v %v", text, n, err)
		}
	}
	for _, text := range []string{"", "v1", "1.0", "v01.0", "v1.00", "v1.01", "v1.0.0", "v0.1", "v1.-1", "v1.0 ", "V1.0", "v1.1234567"} {
		if n, err := release.ParseNumber(text); err == nil {
			t.Errorf("%q is %v", text, n)
		}
	}
}

func TestNumber_ComparesAsNumbers(t *testing.T) {
	for _, c := range [][2]string{{"v1.9", "v1.10"}, {"v1.10", "v2.0"}, {"v9.0", "v10.0"}} {
		older, _ := release.ParseNumber(c[0])
		newer, _ := release.ParseNumber(c[1])
		if older.Compare(newer) >= 0 || newer.Compare(older) <= 0 || older.Compare(older) != 0 {
			t.Errorf("%s is not older than %s", older, newer)
		}
	}
}
