package kinds_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
)

// shut is a folder that cannot be listed.
type shut struct{}

func (shut) Open(string) (fs.File, error) { return nil, fs.ErrPermission }

func TestAFolderThatCannotBeListedIsNotAnEmptyOne(t *testing.T) {
	if _, err := kinds.Read(shut{}, "kinds"); !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), "catalogue: kinds: ") {
		t.Errorf("it says %v", err)
	}
}

func TestACatalogueOfTextsHasTheLimitsOfAFolder(t *testing.T) {
	for says, texts := range map[string]map[string]string{
		"kinds has no file that ends in .graphqls":     {},
		"kinds/a.graphqls: the file has more than":     {"a.graphqls": strings.Repeat(" ", kinds.MaxFileBytes+1)},
		"the files of kinds have more than 16777216 b": many(17, strings.Repeat(" ", kinds.MaxFileBytes)),
		"kinds has 1001 files; at most 1000 are read":  many(1001, ""),
	} {
		if _, err := kinds.ReadTexts(texts, "kinds"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("it says %v; want %s", err, says)
		}
	}
}

// many are files of one text.
func many(n int, text string) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[strings.Repeat("a", i+1)+".graphqls"] = text
	}
	return out
}
