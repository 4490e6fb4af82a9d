package jmespath

// node is one construct of an expression, which evaluates itself on a value.
type node interface {
	eval(in *Interpreter, value any) (any, error)
}

type (
	fieldNode struct {
		name    string
		missing *NotFoundError
	}
	literalNode   struct{ value any }
	currentNode   struct{}
	referenceNode struct{ of node } // &expr, as the argument of a function
	indexNode     struct{ index int }
	subNode       struct{ left, right node }
	pipeNode      struct{ left, right node }
	orNode        struct{ left, right node }
	andNode       struct{ left, right node }
	notNode       struct{ operand node }
	listNode      struct{ members []node }
	hashNode      struct {
		keys    []string
		members []node
	}
	equalNode struct {
		left, right node
		want        bool
	}
	orderNode struct {
		left, right node
		holds       func(order int) bool
	}
	callNode struct {
		name     string
		function *function
		args     []node
	}
)

// lenient evaluates where a missing key is as good as null.
func lenient(n node, in *Interpreter, value any) (any, error) {
	if err := in.clock.Step(); err != nil {
		return nil, err
	}
	result, err := n.eval(in, value)
	if err != nil && isNotFound(err) {
		return nil, nil
	}
	return result, err
}

func (n fieldNode) eval(_ *Interpreter, value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if field, ok := v[n.name]; ok {
			return field, nil
		}
		return nil, n.missing
	case Object:
		field, found, err := v.Field(n.name)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, n.missing
		}
		return field, nil
	}
	return nil, nil
}

func (n literalNode) eval(*Interpreter, any) (any, error) { return n.value, nil }

func (currentNode) eval(_ *Interpreter, value any) (any, error) {
	if o, ok := value.(Object); ok {
		return o.Fields()
	}
	return value, nil
}

// eval of a reference leaves it to the function on which values it is evaluated.
func (n referenceNode) eval(in *Interpreter, _ any) (any, error) {
	return expressionRef(func(value any) (any, error) { return lenient(n.of, in, value) }), nil
}

func (n indexNode) eval(_ *Interpreter, value any) (any, error) {
	list, ok := value.([]any)
	index := n.index
	if index < 0 {
		index += len(list)
	}
	if !ok || index < 0 || index >= len(list) {
		return nil, nil
	}
	return list[index], nil
}

func (n subNode) eval(in *Interpreter, value any) (any, error) {
	left, err := n.left.eval(in, value)
	if err != nil {
		return nil, err
	}
	return n.right.eval(in, left)
}

func (n pipeNode) eval(in *Interpreter, value any) (any, error) {
	left, err := lenient(n.left, in, value)
	if err != nil {
		return nil, err
	}
	return lenient(n.right, in, left)
}

func (n orNode) eval(in *Interpreter, value any) (any, error) {
	left, err := lenient(n.left, in, value)
	if err != nil || Truthy(left) {
		return left, err
	}
	return lenient(n.right, in, value)
}

// eval of && swallows a missing key on its left alone, as the fork does.
func (n andNode) eval(in *Interpreter, value any) (any, error) {
	left, err := lenient(n.left, in, value)
	if err != nil || !Truthy(left) {
		return left, err
	}
	return n.right.eval(in, value)
}

func (n notNode) eval(in *Interpreter, value any) (any, error) {
	operand, err := lenient(n.operand, in, value)
	if err != nil {
		return nil, err
	}
	return !Truthy(operand), nil
}

func (n listNode) eval(in *Interpreter, value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	list := make([]any, len(n.members))
	for i, member := range n.members {
		item, err := lenient(member, in, value)
		if err != nil {
			return nil, err
		}
		list[i] = item
	}
	return list, nil
}

func (n hashNode) eval(in *Interpreter, value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	hash := make(map[string]any, len(n.members))
	for i, member := range n.members {
		item, err := lenient(member, in, value)
		if err != nil {
			return nil, err
		}
		hash[n.keys[i]] = item
	}
	return hash, nil
}

func (n equalNode) eval(in *Interpreter, value any) (any, error) {
	left, right, err := both(n.left, n.right, in, value)
	if err != nil {
		return nil, err
	}
	return Equal(in.clock, left, right) == n.want, nil
}

// eval of an ordering is null unless both sides are numbers.
func (n orderNode) eval(in *Interpreter, value any) (any, error) {
	left, right, err := both(n.left, n.right, in, value)
	if err != nil {
		return nil, err
	}
	order, ok := compareNumbers(left, right)
	if !ok {
		return nil, nil
	}
	return n.holds(order), nil
}

func both(left, right node, in *Interpreter, value any) (any, any, error) {
	l, err := lenient(left, in, value)
	if err != nil {
		return nil, nil, err
	}
	r, err := lenient(right, in, value)
	return l, r, err
}
