package cel

// Plan makes the program of an expression.
func Plan(x *Expression) error {
	_, err := x.plan.make()
	return err
}
