package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// packageFile is the configuration file of nfpm. ${VERSION}, ${ARCH} and ${STAGE} in it are replaced.
const packageFile = "deploy/package/nfpm.yaml"

// packages makes the packages for Linux on one processor.
func (r *release) packages(ctx context.Context, processor, binary string) error {
	stage := filepath.Join(r.work, "stage_"+processor)
	if err := r.stage(stage, binary); err != nil {
		return err
	}
	text, err := os.ReadFile(packageFile)
	if err != nil {
		return err
	}
	values := map[string]string{"VERSION": packageVersion(r.version, r.made.Unix()), "ARCH": processor, "STAGE": stage}
	settings := filepath.Join(stage, "nfpm.yaml")
	expanded := os.Expand(string(text), func(name string) string { return values[name] })
	if err := os.WriteFile(settings, []byte(expanded), 0o644); err != nil {
		return err
	}
	tool := filepath.Join(r.work, "nfpm")
	if err := r.tool(ctx, tool, nfpm); err != nil {
		return err
	}
	epoch := "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.made.Unix(), 10)
	for _, form := range []string{"deb", "rpm"} {
		to := filepath.Join(r.out, fmt.Sprintf("sluice_%s_linux_%s.%s", r.version, processor, form))
		if _, err := run(ctx, []string{epoch}, tool, "package", "-f", settings, "-p", form, "-t", to); err != nil {
			return err
		}
	}
	return nil
}

// stage writes the files of a package to a folder, with the time of the release.
func (r *release) stage(folder, binary string) error {
	text, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	files := []packed{{name: "sluice", text: text, executable: true}}
	for _, file := range r.shared {
		if strings.HasPrefix(file.name, "man/") {
			if file.text, err = gzipped(file.text); err != nil {
				return err
			}
			file.name += ".gz"
		}
		files = append(files, file)
	}
	for _, path := range []string{
		"deploy/systemd/sluice.service", "deploy/systemd/sluice.yaml",
		"deploy/package/postinstall.sh", "deploy/package/preremove.sh", "deploy/package/postremove.sh",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files = append(files, packed{name: filepath.Base(path), text: text})
	}
	for _, file := range files {
		path := filepath.Join(folder, filepath.FromSlash(file.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, file.text, file.mode()); err != nil {
			return err
		}
		if err := os.Chtimes(path, r.made, r.made); err != nil {
			return err
		}
	}
	return nil
}

func gzipped(text []byte) ([]byte, error) {
	var out bytes.Buffer
	to, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := to.Write(text); err != nil {
		return nil, err
	}
	err = to.Close()
	return out.Bytes(), err
}

// semantic matches versions such as v1.2.3 and v1.2.3-rc.1. It also matches the output of git describe for a commit
// after such a version.
var semantic = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-(.+?))??(?:-(\d+-g[0-9a-f]+))?(-dirty)?$`)

// packageVersion returns the version for packages. A pre-release, or a commit before the first release, has a lower
// version than the following release. A commit after a release has a higher version than that release.
func packageVersion(version string, made int64) string {
	found := semantic.FindStringSubmatch(version)
	if found == nil {
		return fmt.Sprintf("0.0.0~%d.%s", made, other.ReplaceAllString(version, "."))
	}
	out := found[1]
	if found[2] != "" {
		out += "~" + other.ReplaceAllString(found[2], ".")
	}
	if later := found[3] + found[4]; later != "" {
		out += "+" + strings.TrimPrefix(other.ReplaceAllString(later, "."), ".")
	}
	return out
}

// other matches characters that the version of a package must not have.
var other = regexp.MustCompile(`[^0-9A-Za-z.]+`)

// dateComponents sets the time in a list of components to the time of the release.
func (r *release) dateComponents(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	about, ok := list["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("%s: there is no metadata", path)
	}
	about["timestamp"] = r.made.Format("2006-01-02T15:04:05Z")
	out, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(out, '\n'), 0o644)
}
