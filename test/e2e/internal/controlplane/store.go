package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Store is what a plane has stored: the keys of etcd, in its JSON API's encoding.
type Store map[string]bool

// Stored lists what is stored now.
func (p *Plane) Stored(ctx context.Context) (Store, error) {
	var out struct {
		KVs []struct {
			Key string `json:"key"`
		} `json:"kvs"`
	}
	everything := map[string]any{"key": []byte("/registry/"), "range_end": []byte("/registry0"), "keys_only": true}
	if err := p.ask(ctx, "range", everything, &out); err != nil {
		return nil, err
	}
	stored := Store{}
	for _, kv := range out.KVs {
		stored[kv.Key] = true
	}
	return stored, nil
}

// Reset removes what has come since: the plane is as good as a new one, but that
// what was there and was changed stays changed. The API server learns of it by its
// watches, as of any deletion.
func (p *Plane) Reset(ctx context.Context, since Store) error {
	now, err := p.Stored(ctx)
	if err != nil {
		return err
	}
	for key := range now {
		if !since[key] {
			if err := p.ask(ctx, "deleterange", map[string]any{"key": key}, &struct{}{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask calls etcd's JSON API, in which bytes are base64, as in Go's.
func (p *Plane) ask(ctx context.Context, what string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.storage+"/v3/kv/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s to %s", response.Status, what)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
