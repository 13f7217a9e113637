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
		{CodeConflict, "the resource was changed since the revision that is expected (a new status counts only for writes of the status); extensions.currentRevision is the current one", "read again, repeat the change"},
		{CodeAborted, "others were faster again and again, until the gateway gave up; the revision that is expected, if any, was not stale, and nothing was changed", "send it again"},
		{CodeBeingDeleted, "the deletion of the resource was requested: its spec is frozen", "wait until it is gone; only its status can be changed, and finalizers removed by a patch of nothing else"},
		{CodeValidationFailed, "a value breaks a constraint or rule: extensions.path, field, rule, and limit (a number) or expected; one error for each", "correct the values"},
		{CodeBadUserInput, "the request does not make sense: an unknown kind, a page that is too large, a manifest that does not parse", "correct the request"},
		{CodePositionExpired, "the changes after the cursor are no longer available", "watch with `snapshot: true`, or list again and watch after the `changeCursor` of the first page"},
		{CodeLagged, "the listener was too slow", "resume after extensions.cursor"},
		{CodeCatalogueChanged, "the kinds of the gateway were replaced since the stream began; it went on for ten minutes, until two more replacements, or until one that hides what it showed", "resume after extensions.cursor, with a document that is valid now; without a cursor begin again"},
		{CodeUnsupportedVersion, "the request came to a version of the API that this gateway does not serve; extensions.supported lists those that it does", "use one of them: `GET /versions` says until when"},
		{CodeCursorInvalid, "the text is no cursor, or one of another connection", "take cursors from the same field with the same arguments"},
		{CodeUnreadable, "the resource is stored in a form that this gateway cannot read", "upgrade the gateway, or write the resource anew by an upsert or apply without a revision"},
		{CodeUnauthenticated, "the gateway needs a credential, and there is none, or it is not valid, has expired or was revoked; over HTTP the status is 401, a WebSocket is closed with 4403, an event stream completes", "log in, or get another token, and resume"},
		{CodeForbidden, "the gateway does not do this for you: a Host or an Origin that is not served, a request that a page of another origin may have sent, a document that is not trusted, an introspection where the schema is hidden; or your roles do not give you a verb, which the message names with the kind, and with the namespace and name if it depends on them: that says nothing about what is stored; or the service that owns or reviews the resource does not make the change, for the reason in the message", "ask the operator, or an administrator for an AccessBinding; see [security](security.md)"},
		{CodeLimitExceeded, "the request is over a limit; extensions.setting is the setting, where there is one, and extensions.selection the place in the document; with extensions.retryAfter the caller was too fast, or had too much at a time (429); with extensions.outcome APPLIED the change was made and its answer is what was too much", "ask for less; if retryable, later"},
		{CodeUnavailable, "the store, the issuer of a token, or the service that owns the resource does not answer; with extensions.outcome UNKNOWN the change may have been made, with APPLIED the service has made it and it is not shown here yet", "if retryable, send it again later; after UNKNOWN, read first"},
		{CodeTimeout, "the request took longer than it may; nothing was changed", "send it again, or ask for less"},
		{CodeInternal, "a fault of the gateway; the log has its cause under extensions.requestId", "tell the operator"},
		{CodeParseFailed, "the document is not valid GraphQL syntax", "correct the document"},
		{CodeDocumentInvalid, "the document or its variables are not those of this API, or not of the types that it has", "correct the document or the variables; a schema that was loaded long ago may be an older one"},
		{CodePersistedQueryNotFound, "the document was named by its hash, which the gateway does not know", "send the hash and the document"},
	}
}

// Document is docs/errors.md: the codes and what they come from.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Errors

Generated from backend/service: go test ./backend/service/failure -run ListOfErrors -update

Every error has ` + "`message`, `extensions.code` and `extensions.requestId`" + `. Errors about a resource also have
` + "`kind`, `namespace` and `name`" + `. One about a value of the request
has ` + "`path`, a list from the argument (`[\"input\", \"spec\", \"resource\", \"tags\", 1]`), and `field`, the same as text (`input.spec.resource.tags[1]`)" + `; ` + "`retryable: true`" + ` says that nothing was changed and that the same request may succeed later.

| code | means | then |
|---|---|---|
`)
	for _, e := range explanations() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.code, e.means, e.then)
	}
	b.WriteString("\n## What failures of the store become\n\nA revision conflict of the store means that others were faster; the gateway tries again until the request's time is over. A CONFLICT, by the revision that the client expects, is no failure of the store.\n\n| failure | code | retryable | outcome |\n|---|---|---|---|\n")
	for _, t := range translations() {
		fmt.Fprintf(&b, "| %v | %s | %v | %s |\n", t.is, t.code, t.retryable, t.outcome)
	}
	b.WriteString("| anything else | INTERNAL | false | |\n")
	return b.String()
}
