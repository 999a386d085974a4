"""Tests the training and the use of language models."""

import re

import support
from support import SOURCE, ProgramTest

LAYERS = ("[{type: embedding, units: 16}, {type: positions}, {type: transformer_encoder, heads: 2, feedforward: 32, dropout: 0.1, "
          "causal: true}, {type: linear}]")


class Texts(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("t.txt", "the ship and the sheep saw the sea, and the sea saw them. " * 30)

    def text(self, *settings):
        """Returns arguments: a small model in the file of the shipped one, for a text of 1,740 characters."""
        return [SOURCE / "models/text_gpt.yaml", *self.settings(
            f"model.layers={LAYERS}", "data.path=t.txt", "data.sequence_length=16", "training.batch_size=9", "training.epochs=3",
            "training.optimizer.learning_rate=0.01", *settings)]

    def figures(self, text):
        """Returns the loss and the metrics of the last validation."""
        found = re.findall(r"validation loss ([0-9.]+)  validation perplexity ([0-9.]+)  validation accuracy ([0-9.]+) %", text)
        self.assertTrue(found, text)
        return [float(number) for number in found[-1]]

    def test_a_trained_model_continues_a_text(self):
        trained = self.run_one("convnet", *self.text("output.dir=run"), "--log", "log")
        self.assertIn("98 windows of 16 tokens, 11 for validation, from a text of 1740 tokens in t.txt", trained.out)
        self.assertIn("tokens: 14 characters and <unk>, which stands for 0 of the 1566 tokens to train on", trained.out)
        loss, perplexity, accuracy = self.figures(trained.out)
        self.assertAlmostEqual(2.718281828 ** loss, perplexity, delta=1e-3 * perplexity)
        self.assertGreater(accuracy, 40)
        self.assertEqual(self.figures(self.run_one("convnet", *self.text("output.dir=run"), "--evaluate").out), [loss, perplexity, accuracy])
        write = lambda *options: self.run_one("convnet", *self.text("output.dir=run", "data.path=gone"), "--generate", 30, *options).out
        text = write("--prompt", "the s")
        self.assertTrue(text.startswith("the s"))
        self.assertEqual(len(text), 5 + 30 + 1)
        self.assertEqual(write("--prompt", "the s"), text)
        self.assertNotEqual(write("--prompt", "the s", "--seed", 2), text)
        self.assertIn("the se", write("--prompt", "the s" * 9, "--temperature", 0))
        self.assertEqual(write("--temperature", 0), write("--top-k", 1, "--seed", 5))

    def test_a_run_that_was_stopped_ends_like_one_that_was_not(self):
        arguments = self.text("training.micro_batches=2")
        self.run_one("convnet", *arguments, *self.settings("output.dir=whole"))
        self.run_one("convnet", *arguments, *self.settings("output.dir=parts"), "--steps", 17)
        self.run_one("convnet", *arguments, *self.settings("output.dir=parts"), "--resume")
        self.assertEqual(self.weight_bytes("whole"), self.weight_bytes("parts"))

    def test_two_ranks_and_any_micro_batches_give_the_same_figures(self):
        layers = LAYERS.replace("dropout: 0.1", "dropout: 0")
        arguments = self.text("training.precision=float64", f"model.layers={layers}")
        one = self.run_one("convnet", *arguments, *self.settings("output.dir=one"))
        for ranks, name, *settings in ((1, "parts", "training.micro_batches=3"), (2, "two"), (2, "sent", "distributed.strategy=scatter-gather")):
            other = self.run_ranks(ranks, "convnet", *arguments, *self.settings(f"output.dir={name}", *settings))
            self.assertLess(support.difference(self.weights("one"), self.weights(name)), 1e-10, name)
            self.assertEqual(self.figures(other.out), self.figures(one.out), name)

    def test_bytes_and_words(self):
        for tokens, described in (("bytes", "the 256 bytes"), ("words", "9 words and <unk>, which stands for ")):
            arguments = self.text(f"data.tokens={tokens}", f"output.dir={tokens}", "data.sequence_length=8", "training.epochs=2")
            trained = self.run_one("convnet", *arguments)
            self.assertIn(f"tokens: {described}", trained.out)
            written = self.run_one("convnet", *arguments, "--generate", 4, "--prompt", "the sheep saw").out
            self.assertTrue(written.startswith("the sheep saw"), written)

    def test_another_vocabulary_is_refused(self):
        self.run_one("convnet", *self.text("output.dir=run", "training.epochs=1"))
        weights = self.checkpoint("run") / "weights.safetensors"
        self.write("other.txt", "the ship ang the sheep saw the sea, ang the sea saw them. " * 30)
        refused = self.run_one("convnet", *self.text("data.path=other.txt"), "--weights", weights, status=2)
        self.assertIn("has weights of 15 characters, and the text has 15 characters, of which at least one is another", refused.err)
        self.run_one("convnet", *self.text("data.stride=5"), "--weights", weights, "--steps", 1)
        refused = self.run_one("convnet", *self.text("data.path=other.txt", "output.dir=run"), "--evaluate", status=2)
        self.assertIn("was made with another table, text or split than the section data describes now", refused.err)
        other = self.text("output.dir=run", "data.validation_path=other.txt")
        self.assertIn("validation perplexity", self.run_one("convnet", *other, "--evaluate").out)

    def test_options_that_do_not_fit_are_refused(self):
        self.run_one("convnet", *self.text("output.dir=run", "training.epochs=1"))
        refused = self.run_ranks(2, "convnet", *self.text("output.dir=run"), "--generate", 5, status=2)
        self.assertIn("--generate is for one rank; start the program without mpirun", refused.text)
        refused = self.run_one("convnet", *self.text("output.dir=run"), "--predict", "t.txt", status=2)
        self.assertIn("--predict reads tables (csv) and images (image_folder, idx); --generate continues a text", refused.err)
        self.run_one("mlp", *self.iris("output.dir=iris", "training.epochs=1"))
        refused = self.run_one("mlp", *self.iris("output.dir=iris"), "--generate", 5, status=2)
        self.assertIn("model.task is classification, and --generate continues a text; it needs language_model", refused.err)


if __name__ == "__main__":
    support.main()
