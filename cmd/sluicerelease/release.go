package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// These tools are run by module and version.
const (
	nfpm      = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.1"
	cyclonedx = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
)

// sumsFile is the file with the SHA-256 checksums of all other files, in the form of sha256sum.
const sumsFile = "SHA256SUMS"

// allTargets returns the systems and processors for which there are releases.
func allTargets() (out []string) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		out = append(out, system+"/amd64", system+"/arm64")
	}
	return out
}

// release is a release to build.
type release struct {
	version string
	// out is the folder of the files.
	out string
	// targets are pairs of a system and a processor, such as linux/amd64.
	targets []string
	// components reports whether to write the list of components.
	components bool

	// work is a folder for intermediate files.
	work string
	// made is the modification time of all files: the time of the commit.
	made time.Time
	// shared are the files that every archive has: the manual pages, the completions and the texts.
	shared []packed
}

func (r *release) validate() error {
	if r.version == "" {
		return errors.New("version: it is empty; a name such as v1.2.3 is wanted")
	}
	if strings.ContainsAny(r.version, "/\\ \n") {
		return fmt.Errorf("version: %q cannot be part of the name of a file", r.version)
	}
	for _, target := range r.targets {
		if !slices.Contains(allTargets(), target) {
			return fmt.Errorf("targets: %q; accepted are %s", target, strings.Join(allTargets(), ", "))
		}
	}
	return nil
}

// build writes all files.
func (r *release) build(ctx context.Context) error {
	if _, err := os.Stat(r.out); err == nil {
		return fmt.Errorf("out: %s is there already; remove it first", r.out)
	}
	var err error
	if r.made, err = commitTime(ctx); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "sluicerelease"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.work) }()
	if err := r.texts(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, target := range r.targets {
		if err := r.target(ctx, target); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	if r.components {
		if err := r.listComponents(ctx); err != nil {
			return err
		}
	}
	return writeSums(r.out)
}

// commitTime returns the time in SOURCE_DATE_EPOCH, or the time of the current commit.
func commitTime(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the time of the commit: %w; set SOURCE_DATE_EPOCH outside a repository", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// run runs a command. environment is added to the environment of this process.
func run(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(cmd.Environ(), environment...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, problems.Bytes())
	}
	return out, nil
}

// binary builds the binary of a target and returns its path.
func (r *release) binary(ctx context.Context, target string) (string, error) {
	system, processor, _ := strings.Cut(target, "/")
	path := filepath.Join(r.work, system+"_"+processor, "sluice")
	if system == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	environment := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + processor, "GOAMD64=v1", "GOARM64=v8.0"}
	flags := "-s -w -X github.com/sluicegw/sluice/cmd/sluice/version.release=" + r.version
	_, err := run(
		ctx, environment, "go", "build", "-trimpath", "-buildvcs=auto", "-ldflags", flags, "-o", path, "./cmd/sluice",
	)
	return path, err
}

// texts makes the manual pages and the completions, for which it builds a binary for this machine. It also reads the
// other files that every archive has.
func (r *release) texts(ctx context.Context) error {
	host, err := r.binary(ctx, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil {
		return err
	}
	for name, shell := range map[string]string{
		"sluice.bash": "bash", "_sluice": "zsh", "sluice.fish": "fish", "sluice.ps1": "powershell",
	} {
		text, err := run(ctx, nil, host, "completion", shell)
		if err != nil {
			return err
		}
		r.shared = append(r.shared, packed{name: "completions/" + name, text: text})
	}
	pages := filepath.Join(r.work, "man")
	epoch := "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.made.Unix(), 10)
	if _, err := run(ctx, []string{epoch}, host, "man", pages); err != nil {
		return err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := r.share(filepath.Join(pages, entry.Name()), "man/man1/"+entry.Name()); err != nil {
			return err
		}
	}
	return errors.Join(r.share("README.md", "README.md"), r.share("LICENSE", "LICENSE"))
}

// share adds a file to all archives.
func (r *release) share(path, name string) error {
	text, err := os.ReadFile(path)
	r.shared = append(r.shared, packed{name: name, text: text})
	return err
}

// target writes the archive of a target. For Linux it also makes the packages.
func (r *release) target(ctx context.Context, target string) error {
	path, err := r.binary(ctx, target)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	system, processor, _ := strings.Cut(target, "/")
	name := strings.Join([]string{"sluice", r.version, system, processor}, "_")
	files := append(slices.Clone(r.shared), packed{name: filepath.Base(path), text: text, executable: true})
	if system == "linux" {
		for _, of := range []string{"sluice.service", "sluice.yaml"} {
			text, err := os.ReadFile(filepath.Join("deploy", "systemd", of))
			if err != nil {
				return err
			}
			files = append(files, packed{name: "systemd/" + of, text: text})
		}
	}
	archive := archive{folder: name, made: r.made, files: files}
	if system == "windows" {
		return archive.writeZip(filepath.Join(r.out, name+".zip"))
	}
	if err := archive.writeTar(filepath.Join(r.out, name+".tar.gz")); err != nil {
		return err
	}
	if system == "linux" {
		return r.packages(ctx, processor, path)
	}
	return nil
}

// listComponents writes the list of the modules in the binary for Linux.
func (r *release) listComponents(ctx context.Context) error {
	path := filepath.Join(r.out, "sluice_"+r.version+".cdx.json")
	environment := []string{"CGO_ENABLED=0", "GOFLAGS="}
	tool := filepath.Join(r.work, "cyclonedx-gomod")
	if err := r.tool(ctx, tool, cyclonedx); err != nil {
		return err
	}
	_, err := run(
		ctx, append(environment, "GOOS=linux", "GOARCH=amd64"), tool,
		"app", "-json", "-noserial", "-std", "-main", "cmd/sluice", "-output", path,
	)
	if err != nil {
		return err
	}
	return r.dateComponents(path)
}

// tool builds a tool for this machine, from a module with a version.
func (r *release) tool(ctx context.Context, path, module string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	environment := []string{"GOBIN=" + filepath.Dir(path), "GOOS=", "GOARCH=", "CGO_ENABLED=0", "GOFLAGS="}
	_, err := run(ctx, environment, "go", "install", module)
	return err
}

// writeSums writes the checksums of the files in a folder.
func writeSums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, sumsFile), sums.Bytes(), 0o644)
}
