package cel

import "testing"

// What has grown as much as there was is read as a whole again, and so is another state.
func TestChecked(t *testing.T) {
	object, next := map[string]any{"a": "1"}, map[string]any{"a": "2"}
	var none *Checked
	none.merged(&Checked{}, object, 100, size{})
	if none.of(object).fits() {
		t.Error("nothing is checked where nobody keeps it")
	}
	c := &Checked{}
	if c.of(object).fits() || c.of(nil).fits() {
		t.Error("nothing is checked at first")
	}
	c.merged(c, object, 100, size{})
	if !c.of(object).fits() || c.of(next).fits() {
		t.Error("want the state that was read, and no other one")
	}
	c.merged(c, next, 0, size{values: 60})
	if !c.of(next).fits() || c.of(object).fits() {
		t.Error("want the state that was written")
	}
	c.merged(c, next, 0, size{values: 60})
	if c.of(next).fits() {
		t.Error("120 steps were written to 100, and are not read again")
	}
}
