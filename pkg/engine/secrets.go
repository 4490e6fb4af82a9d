package engine

import (
	"context"
	"sync/atomic"
)

// SecretUse reports whether a Secret is used in what is done under a context. It is safe for
// concurrent use.
type SecretUse struct {
	outer *SecretUse
	used  atomic.Bool
}

type secretUseKey struct{}

// WatchSecrets returns a context under which each use of a Secret is noted.
func WatchSecrets(ctx context.Context) (context.Context, *SecretUse) {
	use := &SecretUse{outer: secretUseOf(ctx)}
	return context.WithValue(ctx, secretUseKey{}, use), use
}

// Any reports whether a Secret was used.
func (u *SecretUse) Any() bool { return u.used.Load() }

// NoteSecret notes that a Secret is used: what follows under the context may depend on it.
func NoteSecret(ctx context.Context) {
	for use := secretUseOf(ctx); use != nil; use = use.outer {
		use.used.Store(true)
	}
}

// WithSecret returns a context under which a Secret is used.
func WithSecret(ctx context.Context) context.Context {
	ctx, _ = WatchSecrets(ctx)
	NoteSecret(ctx)
	return ctx
}

// UsesSecret reports whether a Secret was used under a context, so that a request with it may
// hold what was computed from one.
func UsesSecret(ctx context.Context) bool {
	for use := secretUseOf(ctx); use != nil; use = use.outer {
		if use.Any() {
			return true
		}
	}
	return false
}

func secretUseOf(ctx context.Context) *SecretUse {
	use, _ := ctx.Value(secretUseKey{}).(*SecretUse)
	return use
}
