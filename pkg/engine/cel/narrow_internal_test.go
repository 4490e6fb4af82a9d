package cel

import "testing"

// What has grown as much as there was is read as a whole again, and so is another state.
func TestChecked(t *testing.T) {
	object, next := map[string]any{"a": "1"}, map[string]any{"a": "2"}
	var none *Checked
	none.set(object, 100)
	if none.has(object) {
		t.Error("nothing is checked where nobody keeps it")
	}
	c := &Checked{}
	if c.has(object) || c.has(nil) {
		t.Error("nothing is checked at first")
	}
	c.set(object, 100)
	if !c.has(object) || c.has(next) {
		t.Error("want the state that was read, and no other one")
	}
	c.grow(next, 60)
	if !c.has(next) || c.has(object) {
		t.Error("want the state that was written")
	}
	c.grow(next, 60)
	if c.has(next) {
		t.Error("120 steps were written to 100, and are not read again")
	}
}
