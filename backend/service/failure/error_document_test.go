package failure

import (
	"fmt"
	"strings"
)

// explanation is a row of docs/errors.md: what a code means, and what a client does about it.
type explanation struct {
	code  Code
	means string
	then  string
}

func explanations() []explanation {
	return []explanation{
		{CodeNotFound, "a write names a resource that does not exist", "create it, or leave it"},
		{CodeAlreadyExists, "a create names a resource that exists already", "update or upsert it"},
		{CodeConflict, "the resource has changed since the expected revision; `currentRevision` is the present one. If only the status has changed, only a write of the whole status is refused", "read it again, and repeat the change"},
		{CodeAborted, "other writers were faster again and again; nothing was changed, and the expected revision, if any, was not stale", "send it again"},
		{CodeBeingDeleted, "the deletion of the resource was requested, so its spec cannot change", "wait until it is gone. Its status can be written, and finalizers removed by a patch of nothing else"},
		{CodeValidationFailed, "a value breaks a constraint or a rule: `path`, `field`, `rule`, and `limit` (a number) or `expected`. There is an error for each", "correct the values"},
		{CodeBadUserInput, "the request makes no sense: an unknown kind, a page that is too large, a manifest that does not parse", "correct the request"},
		{CodePositionExpired, "the changes after the cursor are no longer in the log", "watch with `snapshot: true`, or list again and watch after the `changeCursor` of the first page"},
		{CodeLagged, "the listener was too slow", "resume after `cursor`"},
		{CodeCatalogueChanged, "the gateway got another catalogue after the stream began. The stream went on for ten minutes, until two more catalogues, or until one that hides what it showed", "resume after `cursor` with a document that is valid now; without a cursor, begin again"},
		{CodeUnsupportedVersion, "the gateway does not serve this version of the API; `supported` lists those it serves", "use one of them. `GET /versions` says until when each is served"},
		{CodeCursorInvalid, "the text is no cursor, or belongs to another connection", "take cursors from the same field with the same arguments"},
		{CodeUnreadable, "the resource is stored in a form that this gateway cannot read", "upgrade the gateway, or replace the resource by an upsert or apply without a revision"},
		{CodeUnauthenticated, "the gateway needs a credential, and there is none, or it is wrong, expired or revoked. HTTP: status 401; WebSocket: closed with 4403; event stream: completes", "log in or get another token, and resume"},
		{CodeForbidden, "the gateway does not do this for you ([causes](#causes-of-forbidden))", "depends on the cause"},
		{CodeLimitExceeded, "the request exceeds the limit named by `setting`, at the place `selection` of the document. With `retryAfter`, the caller was too fast or had too much at a time (status 429)", "ask for less; if `retryable`, ask later"},
		{CodeUnavailable, "the store, the issuer of a token, or the service that owns or reviews the resource does not answer; the gateway is read-only or shutting down; or its memory for requests is used up (`setting` is limit-memory)", "if `retryable`, send it again later. Look at `outcome`"},
		{CodeTimeout, "the request took longer than it may; nothing was changed", "send it again, or ask for less"},
		{CodeInternal, "a fault of the gateway; its log has the cause, with `requestId`", "tell the operator"},
		{CodeParseFailed, "the document is not valid GraphQL syntax", "correct the document"},
		{CodeDocumentInvalid, "the document or its variables do not fit the API", "correct them. If the schema was loaded long ago, load it again"},
		{CodePersistedQueryNotFound, "the gateway does not know the document with this hash", "send the hash and the document"},
	}
}

// Document is docs/errors.md: the codes and what they come from.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Errors

Generated from backend/service: go test ./backend/service/failure -run ListOfErrors -update

An error has a ` + "`message` for people, and `extensions`" + ` for programs:

| key of extensions | when | meaning |
|---|---|---|
` + "| `code`, `requestId` | always | the code is in the next table; the log of the gateway has the request id |\n" +
		"| `retryable` | where it is true | nothing was changed, and the same request may succeed later |\n" +
		"| `retryAfter` | where the gateway knows it | send the request again after so many seconds |\n" +
		"| `outcome` | the change may have been made, or was made | UNKNOWN: the change may have been made; read before you send it again. APPLIED: it was made, but its answer cannot be given |\n" +
		"| `kind`, `namespace`, `name` | errors about a resource | the resource |\n" +
		"| `path`, `field` | errors about a value of the request | where it is: as a list from the argument on (`[\"input\", \"spec\", \"resource\", \"tags\", 1]`), and as text (`input.spec.resource.tags[1]`) |\n" + `
The next table names more of these keys in backquotes.

| code | means | then |
|---|---|---|
`)
	for _, e := range explanations() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.code, e.means, e.then)
	}
	b.WriteString(`
## Causes of FORBIDDEN

| cause | ask |
|---|---|
| your roles do not give you a verb. The message names the verb and the kind, and the namespace and name if it depends on them. It tells nothing about what is stored | an administrator for an AccessBinding ([security](security.md)) |
| the gateway does not serve this Host or Origin, or a page of another origin may have sent the request | the operator |
| the gateway executes trusted documents only, or hides its schema | the operator |
| the service that owns or reviews the resource refuses the change, for the reason in the message | the team that runs the service |

## Failures of the store

How failures of the store are answered. After a revision conflict, the gateway tries again until the time of the request
is over. CONFLICT is something else: it is about the revision that the client expects.

| failure | code | retryable | outcome |
|---|---|---|---|
`)
	for _, t := range translations() {
		fmt.Fprintf(&b, "| %v | %s | %v | %s |\n", t.is, t.code, t.retryable, t.outcome)
	}
	b.WriteString("| anything else | INTERNAL | false | |\n")
	return b.String()
}
