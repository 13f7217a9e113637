package main

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

func TestVersion_AsJSONSaysWhatTheBuildIsMadeOf(t *testing.T) {
	var got build
	if err := json.Unmarshal([]byte(commandtest.Must(t, newRoot, "version", "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Release != version.Text() || got.Go != runtime.Version() || got.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("%+v", got)
	}
	if f := got.Formats; f != gateway.StoredFormats() || f.Embedded == 0 || f.Redis == 0 || f.Export == 0 {
		t.Errorf("%+v", got.Formats)
	}
	if len(got.APIVersions) == 0 || got.APIVersions[0] != (apiVersion{Version: "v1.0", State: "candidate"}) {
		t.Errorf("%+v", got.APIVersions)
	}
}
