"""The pages of answers: where evidence is lost, their scores, and one of them."""
