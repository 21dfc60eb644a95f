"""The outline of a tempered network."""

from tstar.report.figures.outline import outline_data


def test_the_outline_has_bn_just_before_the_output_layer_and_t_just_after():
    stages = outline_data(512, 10, 11.67).stages
    names = [stage.name for stage in stages]
    head = names.index("output layer f")
    assert names[head - 1] == "BatchNorm"
    assert names[head + 1] == "÷ 11.67"
    assert [i for i, stage in enumerate(stages) if stage.inserted] == [head - 1, head + 1]
    assert stages[head - 1].shape == "B × 512"
    assert stages[head].shape == "logits: B × 10"
