package release_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

func TestRead_SortsVersionsByTheirNumbers(t *testing.T) {
	var texts []string
	for range 11 {
		texts = append(texts, shop)
	}
	versions := released(t, texts...)
	for minor, v := range versions {
		if v.Minor != minor || !v.Served() {
			t.Errorf("at %d is %s", minor, v)
		}
	}
	if versions[9].Hash != versions[10].Hash || len(versions[0].Hash) != 16 {
		t.Errorf("hashes %s and %s", versions[9].Hash, versions[10].Hash)
	}
}

func TestRead_RefusesWhatIsNoVersion(t *testing.T) {
	api := kinds.PrintBare(newest(t, shop).API)
	good := map[string]string{"v1.0/shop.graphqls": shop, "v1.0/api.graphql": api}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a spelling":           {map[string]string{"v01/shop.graphqls": shop}, `shop/versions/v01:1: "v01" is no version`},
		"another spelling":     {map[string]string{"v1.0.0/shop.graphqls": shop}, `shop/versions/v1.0.0:1: "v1.0.0" is no version`},
		"a file":               {map[string]string{"notes.txt": ""}, "shop/versions/notes.txt:1: only versions.yaml and a folder for each version"},
		"a file of a version":  {map[string]string{"v1.0/notes.txt": ""}, "shop/versions/v1.0/notes.txt:1: only api.graphql and the sources"},
		"a folder below":       {map[string]string{"v1.0/a/b.graphqls": ""}, "shop/versions/v1.0/a/b.graphqls:1: only api.graphql and the sources"},
		"no API":               {map[string]string{"v1.1/shop.graphqls": shop}, "shop/versions/v1.1:1: api.graphql is missing"},
		"no sources":           {map[string]string{"v1.1/api.graphql": api}, "shop/versions/v1.1:1: the sources of the version are missing"},
		"syntax":               {map[string]string{"v1.0/api.graphql": "type Query {\n  a:\n}\n"}, "shop/versions/v1.0/api.graphql:3: "},
		"a state of no folder": {map[string]string{"versions.yaml": "\nv1.7: {}\n"}, "shop/versions/versions.yaml:2: v1.7 has no folder here"},
	} {
		files := maps.Clone(good)
		maps.Copy(files, c.files)
		_, err := release.Read(files, "shop")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRead_ServesTwoMajorsAndDropsOlderOnes(t *testing.T) {
	files := folders(t, map[string]string{"v1.0": shop, "v1.1": shop, "v2.0": shop})
	versions, err := release.Read(files, "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if !v.Served() {
			t.Errorf("%s is not served", v)
		}
	}
	maps.Copy(files, folders(t, map[string]string{"v3.0": shop}))
	files[release.StatesFile] = "v1.0: {withdrawn: 2030-01-31, why: it was wrong}\nv1.1: {deprecated: 2030-01-31, why: use v2.0}"
	if versions, err = release.Read(files, "shop"); err != nil {
		t.Fatal(err)
	}
	const why = "v3 was released, and a gateway serves 2 majors; use v2.0"
	if dropped := release.Dropped(versions); len(dropped) != 1 || dropped[0].String() != "v1.1" || dropped[0].Why != why {
		t.Errorf("dropped are %v", dropped)
	}
	if versions[0].Served() || versions[0].Why != "it was wrong" || !versions[2].Served() || !versions[3].Served() {
		t.Errorf("%+v", versions)
	}
}

func TestRead_DoesNotReadAWithdrawnMajor(t *testing.T) {
	api := kinds.PrintBare(newest(t, shop).API)
	versions, err := release.Read(map[string]string{
		"v1.0/shop.graphqls": "no SDL: it is not read", "v1.0/api.graphql": "neither is this", "v2.0/shop.graphqls": shop, "v2.0/api.graphql": api,
		"versions.yaml": "v1.0: {withdrawn: 2030-01-31, why: use v2.0}",
	}, "shop")
	if err != nil || len(versions) != 2 || versions[0].Served() || !versions[1].Served() {
		t.Errorf("%v %v", versions, err)
	}
}

// TestRead_FindingsOfSharedDefinitionsAreAtTheirOwnLines: versions share what they have in common, at other lines.
func TestRead_FindingsOfSharedDefinitionsAreAtTheirOwnLines(t *testing.T) {
	api := kinds.PrintBare(newest(t, shop).API)
	at := func(text string) int { return strings.Count(text[:strings.Index(text, "type Part {")], "\n") + 2 }
	for name, text := range map[string]string{
		"below another type":   "type Added {\n  a: Int\n}\n\n" + api,
		"below empty lines":    "\n\n\n" + api,
		"without empty lines":  strings.ReplaceAll(api, "\n\n", "\n"),
		"with parts in pieces": strings.Replace(api, "type Part {\n", "type Part\n\n{\n\n", 1),
	} {
		versions, err := release.Read(map[string]string{
			"v1.0/shop.graphqls": shop, "v1.0/api.graphql": api, "v1.1/shop.graphqls": shop, "v1.1/api.graphql": text,
		}, "shop")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		other := newest(t, strings.Replace(shop, "size: Int!", "length: Int!", 1)).API
		for _, v := range versions {
			want := at(api)
			if v.Minor == 1 && name == "with parts in pieces" {
				want += 3
			} else if v.Minor == 1 {
				want = at(text)
			}
			_, missing := v.View(other)
			found := false
			for _, m := range missing {
				found = found || m.What == "Part.size is gone" && m.Line == want
			}
			if !found {
				t.Errorf("%s: %s, line %d: %v", name, v, want, missing)
			}
		}
	}
}
