package e2e_test

import (
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// completes is what a shell is told for a line whose last word is being typed.
func (g *gateway) completes(words ...string) []string {
	g.t.Helper()
	args := append([]string{"__complete", words[0], "--server", g.address}, words[1:]...)
	out, _, code := sluice(g.t, "", args...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || !strings.HasPrefix(lines[len(lines)-1], ":") {
		g.t.Fatalf("%v: exit %d %q", words, code, out)
	}
	return lines[:len(lines)-1]
}

func TestTheShellCompletesWhatTheGatewayHas(t *testing.T) {
	t.Parallel()
	g := someNetworks(t)
	var plurals, more []string
	for _, k := range kindstest.Kinds(t) {
		plurals, more = append(plurals, k.Plural), append(more, "networks,"+k.Plural)
	}
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{[]string{"get", ""}, append(slices.Clone(plurals), "all")},
		{[]string{"get", "networks,"}, append(more, "networks,all")},
		{[]string{"describe", ""}, plurals},
		{[]string{"get", "net", ""}, []string{"net-a", "net-b", "net-c"}},
		{[]string{"get", "net", "net-a", ""}, []string{"net-b", "net-c"}},
		{[]string{"get", "-n", "other", "net", ""}, []string{"far"}},
		{[]string{"get", "net/"}, []string{"net/net-a", "net/net-b", "net/net-c"}},
		{[]string{"wait", "net/net-a", "sn/"}, []string{"sn/sub-a"}},
		{[]string{"describe", "subnet", ""}, []string{"sub-a"}},
		{[]string{"edit", "subnet", ""}, []string{"sub-a"}},
		{[]string{"delete", "subnet/"}, []string{"subnet/sub-a"}},
		{[]string{"apply", "-n", ""}, []string{"default", "other"}},
		{[]string{"watch", "subnet", ""}, []string{"sub-a"}},
		{[]string{"get", "net", "-n", ""}, []string{"default", "other"}},
		{[]string{"get", "net", "-l", ""}, []string{"team"}},
		{[]string{"get", "net", "-l", "team="}, []string{"team=db", "team=web"}},
		{[]string{"get", "net", "-o", ""}, []string{"table", "wide", "yaml", "json", "manifest", "name", "jsonpath=", "custom-columns="}},
		{[]string{"tree", "net", ""}, []string{"net-a", "net-b", "net-c"}},
		{[]string{"tree", "net", "net-a", "--direction", ""}, []string{"dependencies", "dependents", "both"}},
		{[]string{"finalize", "subnet", ""}, []string{"sub-a"}},
		{[]string{"control", "network", ""}, slices.DeleteFunc(slices.Clone(plurals), func(k string) bool {
			return slices.Contains([]string{"networks", "secrets", "accessBindings", "accessRoles"}, k)
		})},
		{[]string{"explain", "net.spec.resource.m"}, []string{"net.spec.resource.mtu"}},
		{[]string{"get", "teapots", ""}, nil},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
	} {
		got := g.completes(c.words...)
		if c.words[0] == "explain" {
			got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, c.words[1]) })
		}
		if c.words[0] == "completion" {
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q completes to %q, want %q", c.words, got, c.want)
		}
	}
	if got := g.completes("get", "net", "--filter", ""); !slices.Contains(got, "spec.resource.mtu") || !slices.Contains(got, "metadata.name") {
		t.Errorf("filters: %q", got)
	}
}

func TestCompletionIsSilentWhereNobodyAnswers(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	out, _, code := sluice(t, "", "__complete", "get", "--server", "http://127.0.0.1:1", "")
	if code != 0 || out != ":4\n" {
		t.Errorf("exit %d %q", code, out)
	}
}

func TestCompletionDoesNotWaitForAGatewayThatHangs(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it is connected to and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	begin := time.Now()
	out, _, code := sluice(t, "", "__complete", "describe", "--server", "http://"+listener.Addr().String(), "net", "")
	if waited := time.Since(begin); code != 0 || out != ":4\n" || waited > patience {
		t.Errorf("exit %d %q after %v", code, out, waited)
	}
}

func TestTheScriptsOfTheShellsAreRead(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	for shell, check := range map[string]string{"bash": "-n", "zsh": "-n", "fish": "-n"} {
		script, errOut, code := sluice(t, "", "completion", shell)
		if code != 0 || !strings.Contains(script, "__complete") {
			t.Errorf("%s: exit %d %s", shell, code, errOut)
		}
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(path, check)
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s does not read its script: %v\n%s", shell, err, out)
			}
		}
	}
	if _, errOut, code := sluice(t, "", "completion", "tcsh"); code != 2 || !strings.Contains(errOut, "tcsh") {
		t.Errorf("tcsh: exit %d %s", code, errOut)
	}
}

func TestBashCompletesALineThatIsTyped(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	g := someNetworks(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	// What bash-completion gives the script, for a line that is typed in words.
	cmd := exec.Command(bash, "-c", `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; }
__ltrim_colon_completions() { :; }
compopt() { :; }
sluice() { "$COMMAND_LINE" "$@"; }
source <(sluice completion bash)
COMP_WORDS=(sluice describe network net-) COMP_CWORD=3 COMP_LINE='sluice describe network net-' COMP_POINT=28 COMP_TYPE=9
__start_sluice
printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Env = append(cmd.Environ(), "COMMAND_LINE="+path, "SLUICE_SERVER="+g.address)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "net-a\nnet-b\nnet-c\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
