package e2e_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// update writes the transcripts anew.
var update = flag.Bool("update", false, "write the transcripts of testdata anew")

func TestScreenOfFilesThatAreAppliedAndRead(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"nets/a.yaml": network("net-a", "web", 1500) + "---\n" + network("net-b", "db", 1500), "nets/more/c.yaml": network("net-c", "web", 9000)})
	drawn := filepath.Join(s.folder, "drawn") // all that is ever drawn
	s.tmux("pipe-pane", "-t", "s", "cat > "+drawn)
	s.runs("sluice apply -f nets --dry-run", "sluice apply -f nets", "sluice apply -R -f nets", "sluice get networks", "sluice get networks -l team=web -o name")
	if raw, err := os.ReadFile(drawn); err != nil || !strings.Contains(string(raw), "applying 2 of 3 ...") {
		t.Errorf("no line of progress: %v\n%s", err, raw)
	}
	s.records("a folder is applied, then what it holds deeper; what is there already is left alone")
	s.matches("apply")
}

func TestScreenOfARefusalThatIsMended(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"nets.yaml": network("net-a", "web", 15000) + "---\n" + strings.Replace(network("net-b", "web", 1500), "mtu:", "mut:", 1) + "---\n" + network("net-c", "web", 1500)})
	s.runs("sluice apply -f nets.yaml; echo exit $?", "sed -i 's/15000/9000/; s/mut:/mtu:/' nets.yaml", "sluice apply -f nets.yaml; echo exit $?")
	s.records("two of three documents are refused, with their lines; the file is mended")
	s.matches("refusal")
}

func TestScreenOfAConflictAndForce(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, nil)
	s.g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	s.runs("sluice get network net-a -o yaml > mine.yaml", "sed -i 's/mtu: 1500/mtu: 9000/' mine.yaml", "sluice apply -f mine.yaml --dry-run", "sluice label network net-a team=db --overwrite", "sluice apply -f mine.yaml; echo exit $?")
	s.records("somebody else is faster")
	s.runs("clear", "sluice apply -f mine.yaml --ignore-revision", "sluice get network net-a -o manifest")
	s.records("the file is applied all the same")
	s.matches("conflict")
}

func TestScreenOfAWatch(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"a.yaml": network("net-a", "web", 1500)})
	s.runs("sluice apply -f a.yaml")
	s.types("sluice get networks --watch")
	s.sees("net-a")
	s.g.cli(network("net-b", "web", 1500), "apply", "-f", "-")
	s.sees("net-b")
	s.g.cli("", "label", "network", "net-a", "stage=prod")
	s.sees("MODIFIED")
	s.g.cli("", "delete", "network", "net-b")
	s.sees("DELETED")
	s.records("while others write")
	s.interrupts()
	s.runs("sluice get networks")
	s.records("after ^C")
	s.matches("watch")
}

func TestScreenOfAnEditThatIsRefusedAndMended(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"a.yaml": network("net-a", "web", 1500)})
	s.runs("sluice apply -f a.yaml")
	s.edits(`if grep -q '^#' "$1"; then sed -i s/90000/9000/ "$1"; else sed -i s/1500/90000/ "$1"; fi`)
	s.runs("sluice edit network net-a; echo exit $?")
	s.records("the editor opens again with the refusal at the top")
	s.edits(`exit 0`)
	s.runs("sluice edit network/net-a; echo exit $?")
	s.records("nothing is changed")
	s.matches("edit")
}

func TestScreenOfAStatusThatIsEditedWhileOthersWrite(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"a.yaml": network("net-a", "web", 1500)})
	s.runs("sluice control network", "sluice apply -f a.yaml")
	s.edits(`sed -i '/^status:/,$d' "$1"; echo 'status: {conditions: [{type: Available, status: "True"}]}' >> "$1"`)
	s.runs("sluice edit network net-a --subresource=status", "sluice wait network/net-a --for=condition=Available", "sluice get networks",
		"sluice wait network/net-a --for=condition=Available=False --timeout 3s; echo exit $?")
	s.records("the status is written, and waited for")
	s.edits(`sluice label network net-a stage=prod; sed -i 's/"True"/"False"/' "$1"`)
	s.runs("sluice edit network net-a --subresource=status; echo exit $?")
	s.records("somebody else writes meanwhile")
	s.matches("status")
}

func TestScreenOfAPruneThatAsks(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"nets/a.yaml": network("net-a", "web", 1500), "nets/b.yaml": network("net-b", "web", 1500), "nets/c.yaml": network("net-c", "web", 1500)})
	s.runs("sluice apply -f nets", "rm nets/b.yaml nets/c.yaml", "sluice apply -f nets --prune -l team=web --dry-run")
	s.types("sluice apply -f nets --prune -l team=web; echo exit $?")
	s.sees("[y/N]")
	s.tmux("send-keys", "-t", "s", "n", "Enter")
	s.sees("exit 1")
	s.types("sluice apply -f nets --prune -l team=web")
	s.await("the second question", func(screen string) bool { return strings.Count(screen, "[y/N]") == 2 })
	s.tmux("send-keys", "-t", "s", "y", "Enter")
	s.await("a prompt", isPrompt)
	s.runs("sluice get networks -o name")
	s.records("the question is answered with no, then with yes")
	s.matches("prune")
}

func TestScreenOfDeletions(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"a.yaml": network("net-a", "web", 1500) + "---\n" + network("net-b", "web", 1500), "c.yaml": network("net-c", "db", 1500)})
	s.runs("sluice apply -f a.yaml -f c.yaml", "sluice delete networks -l team=web --dry-run", "sluice delete networks -l team=web", "sluice delete -f c.yaml",
		"sluice delete network net-c; echo exit $?", "sluice delete network/net-c --ignore-not-found; echo exit $?", "sluice delete networks -l ''; echo exit $?", "sluice get networks")
	s.records("by labels, by files and by names")
	s.matches("delete")
}

func TestScreenOfADiff(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"a.yaml": network("net-a", "web", 1500)})
	s.runs("sluice diff -f a.yaml; echo exit $?")
	s.records("nothing is stored")
	s.runs("clear", "sluice apply -f a.yaml", "sluice diff -f a.yaml; echo exit $?", "sed -i 's/1500/9000/' a.yaml", "sluice diff -f a.yaml; echo exit $?", "sed -i 's/9000/9/' a.yaml", "sluice diff -f a.yaml; echo exit $?")
	s.records("no difference, one, and a file that is refused")
	s.matches("diff")
}

func TestScreenOfLabelsAndPatches(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"a.yaml": network("net-a", "web", 1500), "b.yaml": network("net-b", "web", 1500)})
	s.runs("sluice create -f a.yaml --dry-run=server", "sluice create -f a.yaml -f b.yaml", "sluice create -f a.yaml; echo exit $?", "sluice label network net-a team=db; echo exit $?",
		"sluice label network net-a team=db stage=prod --overwrite", "sluice label networks -l team=web stage=test", "sluice annotate network/net-a example.org/owner='Ada Lovelace'",
		"sluice get networks -l stage -o name")
	s.records("labels and an annotation")
	s.runs("clear", "sluice patch network net-a -p 'spec: {resource: {mtu: 9000, tags: [x]}}'", "sluice patch network nobody -p '{}'; echo exit $?", "sluice get network net-a -o yaml")
	s.records("a patch")
	s.matches("label")
}

// wired are manifests of a network and of subnets of it.
func wired(subnets ...string) string {
	text := network("net-a", "web", 1500)
	for _, name := range subnets {
		text += "---\n" + subnet(name)
	}
	return text
}

func subnet(name string) string {
	return "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Subnet\nmetadata:\n  name: " + name +
		"\nspec:\n  cloudCredentialsRef: {secretName: s, cloudName: c}\n  resource: {networkRef: net-a, cidr: 10.0.0.0/24, ipVersion: 4}\n"
}

func TestScreenOfATreeThatIsWatched(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"sub.yaml": subnet("sub-a") + "---\n" + subnet("sub-b")})
	s.runs("sluice apply -f sub.yaml", "sluice tree subnet sub-a", "sluice tree network net-a; echo exit $?")
	s.records("what is missing")
	s.types("sluice tree subnet/sub-a --watch")
	s.await("a screen of its own", func(screen string) bool { return strings.HasPrefix(screen, "RESOURCE") })
	s.g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	s.await("the network", func(screen string) bool {
		return strings.Contains(screen, "network/net-a") && strings.Count(screen, "BOUND") == 3
	})
	s.records("it comes")
	s.g.cli("", "delete", "network", "net-a")
	s.sees("deletion requested")
	s.records("it is to go")
	s.interrupts()
	s.matches("tree")
}

func TestScreenOfADeletionThatWaits(t *testing.T) {
	t.Parallel()
	s := openTerminal(t, map[string]string{"a.yaml": wired("sub-a", "sub-b", "sub-c", "sub-d")})
	s.runs("sluice apply -f a.yaml", "sluice delete network net-a --dry-run")
	s.records("what would wait")
	s.types("clear")
	s.runs("sluice finalize subnet sub-d --add example.org/cloud", "sluice delete network net-a",
		"sluice get networks", "sluice delete subnets -l '!team'", "sluice delete network net-a --wait --timeout 3s; echo exit $?")
	s.records("others rely on it")
	s.types("clear; sluice delete network net-a --wait; echo exit $?")
	s.sees("PENDING: subnet/sub-d holds it")
	s.g.cli("", "finalize", "subnet", "sub-d", "--remove", "example.org/cloud")
	s.sees("exit 0")
	s.records("the last one goes")
	s.matches("pending")
}
