package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/kinds"
)

func TestTheEnumOfErrorCodesHasThoseThatAreTold(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, v := range api.Types["ErrorCode"].EnumValues {
		got = append(got, v.Name)
	}
	listed, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md")) // generated of the code
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z_]+) \|`).FindAllStringSubmatch(string(listed), -1) {
		want = append(want, row[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-told +enum):\n%s", diff)
	}
}

// Programs compute with limits: what is no number is told as expected.
func TestLimitsInErrorsAreNumbers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*", "*.txt"))
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	said := regexp.MustCompile(`"(limit|expected)": ("?[^,}\n]+)`)
	seen := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range said.FindAllStringSubmatch(string(text), -1) {
			seen[m[1]]++
			if _, err := strconv.ParseFloat(m[2], 64); (err == nil) != (m[1] == "limit") {
				t.Errorf("%s: %s is %s", file, m[1], m[2])
			}
		}
	}
	if seen["limit"] < 5 || seen["expected"] < 3 {
		t.Error(seen)
	}
}
